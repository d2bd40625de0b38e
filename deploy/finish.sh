#!/usr/bin/env bash
# The last step of a release, when all archives are in the folder: the manifests of krew, scoop and winget, made from the plugin's, and the checksums of everything.
# usage: deploy/finish.sh FOLDER SOURCE
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly FOLDER=$1 SOURCE=${2%/}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
readonly SUMMARY='Check, grant and make GMSA credential specs'
download=$SOURCE/releases/download/v$version

sum() {
  sha256sum "$1" | cut -d ' ' -f 1
}

krew_platforms() {
  local archive system arch
  for archive in "$FOLDER"/kubectl-gmsa-"$version"-*.{tar.gz,zip}; do
    [[ -f $archive ]] || continue
    IFS=- read -r system arch <<<"$(basename "${archive%.zip}" .tar.gz | sed "s/^kubectl-gmsa-$version-//")"
    cat <<PLATFORM
    - selector:
        matchLabels:
          os: $system
          arch: $arch
      uri: $download/$(basename "$archive")
      sha256: $(sum "$archive")
      bin: kubectl-gmsa$([[ $system == windows ]] && echo .exe)
PLATFORM
  done
}

krew() {
  cat >"$FOLDER/gmsa.krew.yaml" <<KREW
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: gmsa
spec:
  version: v$version
  homepage: $SOURCE
  shortDescription: $SUMMARY
  description: |
    Says what the GMSA admission webhook will do to the Windows pods of some
    manifests, with file, line, field and fix; makes and lints credential specs,
    grants them to service accounts, and checks an install of the webhook.
  caveats: |
    Krew does not install what completes "kubectl gmsa <TAB>". Copy it, on Windows
    kubectl_complete-gmsa.cmd:
      cp "\${KREW_ROOT:-\$HOME/.krew}/store/gmsa/v$version/kubectl_complete-gmsa" "\${KREW_ROOT:-\$HOME/.krew}/bin/"
  platforms:
$(krew_platforms)
KREW
}

# The file name is the name of the app in scoop.
scoop() {
  local archive=$1
  cat >"$FOLDER/kubectl-gmsa.json" <<SCOOP
{
  "version": "$version",
  "description": "$SUMMARY: the kubectl plugin \"kubectl gmsa\"",
  "homepage": "$SOURCE",
  "license": "Apache-2.0",
  "architecture": {
    "64bit": {
      "url": "$download/$(basename "$archive")",
      "hash": "$(sum "$archive")"
    }
  },
  "bin": ["kubectl-gmsa.exe", "kubectl_complete-gmsa.cmd"]
}
SCOOP
}

# winget_manifest NAME TYPE: the head of one of the three files that winget reads together, from a folder; the rest is standard input.
winget_manifest() {
  {
    printf 'PackageIdentifier: %s\nPackageVersion: "%s"\n' "$package" "$version"
    cat
    printf 'ManifestType: %s\nManifestVersion: 1.10.0\n' "$2"
  } >"$FOLDER/$package$1.yaml"
}

winget() {
  local archive=$1 package=GMSA-Webhook.kubectl-gmsa
  winget_manifest '' version <<<'DefaultLocale: en-US'
  winget_manifest .installer installer <<INSTALLER
InstallerType: zip
NestedInstallerType: portable
NestedInstallerFiles:
  - RelativeFilePath: kubectl-gmsa.exe
    PortableCommandAlias: kubectl-gmsa
Commands:
  - kubectl-gmsa
Installers:
  - Architecture: x64
    InstallerUrl: $download/$(basename "$archive")
    InstallerSha256: $(sum "$archive" | tr a-f A-F)
INSTALLER
  winget_manifest .locale.en-US defaultLocale <<LOCALE
PackageLocale: en-US
Publisher: The gmsa-webhook maintainers
PackageName: kubectl-gmsa
PackageUrl: $SOURCE
License: Apache-2.0
ShortDescription: $SUMMARY
LOCALE
}

krew
windows=$FOLDER/kubectl-gmsa-$version-windows-amd64.zip
scoop "$windows"
winget "$windows"
cd "$FOLDER"
rm -f SHA256SUMS
sums=$(sha256sum -- *)
printf "%s\n" "$sums" >SHA256SUMS
