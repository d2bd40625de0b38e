#!/usr/bin/env bash
# Pushes a release's images (the webhook as IMAGE, `gmsa-tickets` and the plugin `kubectl-gmsa` beside it, each as one manifest list) and its
# charts, and prints their digests as `image=…`, `tickets=…`, `plugin=…`, `chart=…`, `accounts=…` and `tickets_chart=…`. Log in to the registry
# with buildah and helm first.
# usage: deploy/publish.sh FOLDER IMAGE CHARTS
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly FOLDER=$1 IMAGE=$2 CHARTS=$3
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)

# push_image OUTPUT PROGRAM IMAGE
push_image() {
  local list=$3:$version arch digest
  buildah manifest create "$list" >/dev/null
  for arch in amd64 arm64; do
    buildah manifest add --arch "$arch" --os linux "$list" "oci-archive:$FOLDER/$2-$version-$arch.oci.tar" >/dev/null
  done
  digest=$(mktemp)
  buildah manifest push --all --quiet --format oci --digestfile "$digest" "$list" "docker://$list" >&2
  # buildah 1.28 reports success where it could not reach the registry.
  grep -q '^sha256:' "$digest" || { echo "publish: the images were not pushed to $list" >&2 && exit 1; }
  echo "$1=$(cat "$digest")"
}

# push_chart OUTPUT NAME
push_chart() {
  local pushed
  pushed=$(helm push "$FOLDER/$2-$version.tgz" "oci://$CHARTS" 2>&1) || { echo "publish: $pushed" >&2 && exit 1; }
  echo "$1=$(sed -n 's/^Digest: //p' <<<"$pushed")"
}
push_image image gmsa-webhook "$IMAGE"
push_image tickets gmsa-tickets "${IMAGE%/*}/gmsa-tickets"
push_image plugin kubectl-gmsa "${IMAGE%/*}/kubectl-gmsa"
push_chart chart gmsa-webhook
push_chart accounts gmsa-accounts
push_chart tickets_chart gmsa-tickets
