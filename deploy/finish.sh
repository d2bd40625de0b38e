#!/usr/bin/env bash
# The last step of a release, when all archives are in the folder: the krew manifest, made from the plugin's, and the checksums of everything.
# usage: deploy/finish.sh FOLDER SOURCE
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly FOLDER=$1 SOURCE=${2%/}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)

platforms() {
  local archive system arch
  for archive in "$FOLDER"/kubectl-gmsa-"$version"-*.{tar.gz,zip}; do
    [[ -f $archive ]] || continue
    IFS=- read -r system arch <<<"$(basename "${archive%.zip}" .tar.gz | sed "s/^kubectl-gmsa-$version-//")"
    cat <<PLATFORM
    - selector:
        matchLabels:
          os: $system
          arch: $arch
      uri: $SOURCE/releases/download/v$version/$(basename "$archive")
      sha256: $(sha256sum "$archive" | cut -d ' ' -f 1)
      bin: kubectl-gmsa$([[ $system == windows ]] && echo .exe)
PLATFORM
  done
}

cat >"$FOLDER/gmsa.krew.yaml" <<KREW
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: gmsa
spec:
  version: v$version
  homepage: $SOURCE
  shortDescription: Check, grant and make GMSA credential specs
  description: |
    Says what the GMSA admission webhook will do to the Windows pods of some
    manifests, with file, line, field and fix; makes and lints credential specs,
    grants them to service accounts, and checks an install of the webhook.
  caveats: |
    Krew does not install what completes "kubectl gmsa <TAB>". Copy it, on Windows
    kubectl_complete-gmsa.cmd:
      cp "\${KREW_ROOT:-\$HOME/.krew}/store/gmsa/v$version/kubectl_complete-gmsa" "\${KREW_ROOT:-\$HOME/.krew}/bin/"
  platforms:
$(platforms)
KREW
cd "$FOLDER"
rm -f SHA256SUMS
sums=$(sha256sum -- *)
printf "%s\n" "$sums" >SHA256SUMS
