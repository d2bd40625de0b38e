#!/usr/bin/env bash
# Makes all files of a release in one folder: images, the plugin's archives, charts, manifests, schemas, bills of materials, checksums. The same
# commit and tools give the same bytes. Needs what deploy/image.sh needs, for both architectures, the Rust targets of deploy/plugin.sh, mingw's
# C compiler and helm; no network but the package registries.
# usage: deploy/dist.sh [IMAGE [SOURCE]]
#   IMAGE   repository that the image is published to [default: localhost/gmsa-webhook]
#   SOURCE  address of the source repository [default: https://localhost/gmsa-webhook]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly IMAGE=${1:-localhost/gmsa-webhook} SOURCE=${2:-https://localhost/gmsa-webhook}
# shellcheck source=deploy/common.sh
. deploy/common.sh
folder=$target_folder/release-$version
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
# The plugin points to the documentation at its source.
export SOURCE_DATE_EPOCH IMAGE GMSA_SOURCE=$SOURCE

# check_tools: ends with a list of missing tools before the long builds start.
check_tools() {
  local tool target missing=()
  for tool in aarch64-linux-gnu-gcc buildah curl helm openssl python3 qemu-aarch64-static readelf x86_64-w64-mingw32-gcc; do
    command -v "$tool" >/dev/null || missing+=("$tool")
  done
  for target in aarch64-unknown-linux-{gnu,musl} x86_64-unknown-linux-{gnu,musl} x86_64-pc-windows-gnu; do
    [[ -d $(rustc --print target-libdir --target "$target") ]] || missing+=("the Rust target $target")
  done
  [[ ${#missing[@]} -eq 0 ]] || { printf 'dist: missing: %s\n' "${missing[@]}" >&2 && exit 1; }
}

# tar_gz ARCHIVE FOLDER NAME...: the same files give the same bytes, whatever their dates and owners.
tar_gz() {
  local archive=$1 from=$2
  shift 2
  tar --create --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --directory "$from" "$@" |
    gzip --no-name -9 >"$archive"
}

images() {
  local arch program
  for arch in amd64 arm64; do
    for program in gmsa-webhook gmsa-tickets kubectl-gmsa; do
      deploy/image.sh "$arch" "$program"
      mv "$target_folder/image/$program-$version-$arch.oci.tar" "$folder"
    done
    mv "$target_folder"/image/gmsa-{webhook,tickets}-"$version-$arch.cdx.json" "$folder"
  done
}

plugin() {
  local platform
  for platform in linux-amd64 linux-arm64 windows-amd64; do
    deploy/plugin.sh "$platform" "$folder"
  done
}

manifests() {
  local stamped
  stamped=$(mktemp -d)
  python3 deploy/stamp.py "$IMAGE" "$SOURCE" "$stamped"
  local chart
  for chart in gmsa-webhook gmsa-accounts gmsa-tickets; do
    tar_gz "$folder/$chart-$version.tgz" "$stamped" "$chart"
    helm show chart "$folder/$chart-$version.tgz" >/dev/null
  done
  cp "$stamped/gmsa-webhook.yaml" "$folder/gmsa-webhook-$version.yaml"
  cp "$stamped/gmsa-webhook-kubernetes-1.25.yaml" "$folder/gmsa-webhook-$version-kubernetes-1.25.yaml"
  cp "$stamped/gmsa-static-policies.yaml" "$folder/gmsa-static-policies-$version.yaml"
  cp "$stamped/kustomization.yaml" deploy/gmsa-crd.yaml deploy/schemas/*/*.json "$folder"
  rm -rf "$stamped"
}

check_tools
rm -rf "$folder" && mkdir -p "$folder"
images
plugin
manifests
deploy/finish.sh "$folder" "$SOURCE"
ls -l "$folder"
