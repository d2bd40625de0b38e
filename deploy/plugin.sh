#!/usr/bin/env bash
# Builds the plugin for one platform and packs it, as krew and people want it: the program and the licence, and its bill of materials
# beside the archive. On macOS it needs Xcode's tools, elsewhere what deploy/dist.sh needs.
# usage: deploy/plugin.sh linux-amd64|linux-arm64|windows-amd64|darwin-amd64|darwin-arm64 FOLDER
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly PLATFORM=$1 FOLDER=$2
linker=cc flags='' program=kubectl-gmsa
case $PLATFORM in
  linux-amd64) triple=x86_64-unknown-linux-gnu linker=x86_64-linux-gnu-gcc flags='-C target-feature=+crt-static' ;;
  linux-arm64) triple=aarch64-unknown-linux-gnu linker=aarch64-linux-gnu-gcc flags='-C target-feature=+crt-static' ;;
  windows-amd64) triple=x86_64-pc-windows-gnu linker=x86_64-w64-mingw32-gcc flags='-C target-feature=+crt-static' program+=.exe ;;
  darwin-amd64) triple=x86_64-apple-darwin ;;
  darwin-arm64) triple=aarch64-apple-darwin ;;
  *) echo "plugin: unknown platform $PLATFORM" >&2 && exit 2 ;;
esac
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
target=$(cargo metadata --format-version 1 --no-deps --offline | python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')
name=kubectl-gmsa-$version-$PLATFORM

# The bash of macOS is old.
upper=CARGO_TARGET_$(tr 'a-z-' 'A-Z_' <<<"$triple")
# No path of this machine in the program: another one makes the same.
export "${upper}_RUSTFLAGS=$flags --remap-path-prefix=$PWD=. --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo" "${upper}_LINKER=$linker"
cargo build --profile dist --locked --target "$triple" --package kubectl-gmsa
python3 deploy/sbom.py "$triple" "$linker" kubectl-gmsa >"$FOLDER/$name.cdx.json"
python3 deploy/pack.py "$FOLDER/$name" "$(git log -1 --format=%ct)" "$target/$triple/dist/$program" LICENSE
