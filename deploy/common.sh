# How released programs are built, for image.sh and plugin.sh. Sourced from the project's folder; runs in the bash of macOS too.
# shellcheck shell=bash disable=SC2034 # used by those who source it

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
target_folder=$(cargo metadata --format-version 1 --no-deps --offline --locked | python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')

# host: this machine's triple.
host() {
  rustc --version --verbose | sed -n 's/^host: //p'
}

# build_dist PROFILE TRIPLE LINKER FLAGS PACKAGE: builds the program of PACKAGE. The same tools give the same bytes on every machine and in every
# folder. With a target, the flags do not apply to build scripts and macros.
build_dist() {
  local profile=$1 triple=$2 linker=$3 flags=$4 package=$5 upper
  upper=CARGO_TARGET_$(tr 'a-z-' 'A-Z_' <<<"$triple")
  flags+=" --remap-path-prefix=$PWD=. --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo"
  export "${upper}_RUSTFLAGS=$flags"
  # Without this condition, build scripts and macros would be built again for each platform.
  [[ $triple == "$(host)" ]] || export "${upper}_LINKER=$linker" "CC_${triple//-/_}=$linker"
  cargo build --profile "$profile" --locked --target "$triple" --package "$package" --bin "$package"
}

# rust_lld: flags for the linker that comes with Rust. It needs a thirtieth of the space for relative relocations, and merges equal functions.
rust_lld() {
  local folder
  folder=$(rustc --print sysroot)/lib/rustlib/$(host)/bin/gcc-ld
  echo "-C link-arg=-fuse-ld=lld -C link-arg=-B$folder -C link-arg=-Wl,--pack-dyn-relocs=relr,--icf=all"
}

# check_size FILE LIMIT: warns where FILE has more than LIMIT MiB.
check_size() {
  local bytes
  bytes=$(wc -c <"$1")
  [[ $bytes -le $(($2 * 1024 * 1024)) ]] || echo "warning: $1 has $bytes bytes, more than $2 MiB" >&2
}
