#!/usr/bin/env bash
# Builds the plugin for one platform and packs it for krew and for people: the program, the completion of `kubectl gmsa <TAB>` and the licence,
# with the bill of materials beside the archive. On macOS it needs Xcode's tools, elsewhere what deploy/dist.sh needs.
# usage: deploy/plugin.sh linux-amd64|linux-arm64|windows-amd64|darwin-amd64|darwin-arm64 FOLDER
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly PLATFORM=$1 FOLDER=$2
readonly LIMIT=10 # MiB, of the archive
# shellcheck source=deploy/common.sh
. deploy/common.sh
linker=cc flags='' program=kubectl-gmsa complete=kubectl_complete-gmsa archive=tar.gz
# On Linux with musl: a static glibc loads the system's libraries to look up names, and their version must match.
case $PLATFORM in
  linux-amd64) triple=x86_64-unknown-linux-musl linker=x86_64-linux-gnu-gcc flags=$(rust_lld) ;;
  linux-arm64) triple=aarch64-unknown-linux-musl linker=aarch64-linux-gnu-gcc flags=$(rust_lld) ;;
  windows-amd64)
    triple=x86_64-pc-windows-gnu linker=x86_64-w64-mingw32-gcc program+=.exe complete+=.cmd archive=zip
    flags='-C target-feature=+crt-static -C link-arg=-Wl,--no-insert-timestamp'
    ;;
  darwin-amd64) triple=x86_64-apple-darwin ;;
  darwin-arm64) triple=aarch64-apple-darwin ;;
  *) echo "plugin: unknown platform $PLATFORM" >&2 && exit 2 ;;
esac
name=kubectl-gmsa-$version-$PLATFORM

# The C code of libraries is compiled against glibc's headers, whose checked functions musl does not have.
export "CFLAGS_${triple//-/_}=-U_FORTIFY_SOURCE"
build_dist dist-plugin "$triple" "$linker" "$flags" kubectl-gmsa
built=$target_folder/$triple/dist-plugin/$program
if [[ $PLATFORM == linux-* ]] && readelf --program-headers --wide "$built" | grep -q ' INTERP '; then
  echo "plugin: $program is not static: it names a dynamic loader" >&2 && exit 1
fi
python3 deploy/sbom.py "$triple" "$linker" kubectl-gmsa >"$FOLDER/$name.cdx.json"
python3 deploy/pack.py "$FOLDER/$name" "$(git log -1 --format=%ct)" "$built" "deploy/$complete" LICENSE
check_size "$FOLDER/$name.$archive" "$LIMIT"
