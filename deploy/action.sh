#!/usr/bin/env bash
# The steps of action.yml, on a runner of GitHub Actions.
# usage: deploy/action.sh install RELEASES WORKFLOW
#          fetches the plugin of this version from RELEASES/vVERSION, verifies by cosign that WORKFLOW signed the release's checksums for that tag, checks
#          the plugin against them, and puts it on the PATH of later steps
#        deploy/action.sh check
#          checks $FILES with $STATE, $IGNORE and $FAIL_ON, as action.yml explains them; findings become annotations
set -euo pipefail

failed() {
  printf '::error::%s\n' "$*"
  exit 1
}

platform() {
  case $RUNNER_OS-$RUNNER_ARCH in
    Linux-X64) echo linux-amd64.tar.gz ;;
    Linux-ARM64) echo linux-arm64.tar.gz ;;
    macOS-X64) echo darwin-amd64.tar.gz ;;
    macOS-ARM64) echo darwin-arm64.tar.gz ;;
    Windows-X64) echo windows-amd64.zip ;;
    *) return 1 ;;
  esac
}

# issuer ADDRESS: who certifies the workflows of a repository at this address: github.com, a subdomain of ghe.com, or a GitHub Enterprise Server.
issuer() {
  local host=${1#https://}
  host=${host%%/*}
  case $host in
    github.com) echo https://token.actions.githubusercontent.com ;;
    *.ghe.com) echo "https://token.actions.$host" ;;
    *) echo "https://$host/_services/token" ;;
  esac
}

# signed FILE IDENTITY: GitHub has certified that the workflow IDENTITY, a file and a tag of a repository, signed FILE, as FILE.sigstore.json holds.
signed() {
  local said
  command -v cosign >/dev/null || failed "cosign is missing, which verifies the signature of the release"
  said=$(cosign verify-blob --bundle "$1.sigstore.json" --certificate-identity "$2" \
    --certificate-oidc-issuer "$(issuer "$2")" "$1" 2>&1) \
    || failed "${1##*/} is not signed by $2: $(tail -n 1 <<<"$said" | LC_ALL=C tr -cd '[:print:]')"
}

install_plugin() {
  local releases=$1 workflow=$2 version platform archive folder sum
  version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$(dirname "${BASH_SOURCE[0]}")/../Cargo.toml" | head -n 1)
  platform=$(platform) || failed "kubectl gmsa is not released for $RUNNER_OS on $RUNNER_ARCH"
  archive=kubectl-gmsa-$version-$platform
  folder=$RUNNER_TEMP/kubectl-gmsa-$version
  mkdir -p "$folder/bin"
  for file in "$archive" SHA256SUMS SHA256SUMS.sigstore.json; do
    curl --silent --show-error --fail --location --retry 3 --output "$folder/$file" "$releases/v$version/$file" || failed "cannot fetch $releases/v$version/$file"
  done
  signed "$folder/SHA256SUMS" "$workflow@refs/tags/v$version"
  # macOS has no sha256sum.
  sum=$({ sha256sum "$folder/$archive" 2>/dev/null || shasum -a 256 "$folder/$archive"; } | cut -d ' ' -f 1)
  grep -qxF "$sum  $archive" "$folder/SHA256SUMS" || failed "$archive does not have the checksum of the release"
  if [[ $archive == *.zip ]]; then
    unzip -qo "$folder/$archive" -d "$folder/bin"
  else
    tar -xzf "$folder/$archive" -C "$folder/bin"
  fi
  echo "$folder/bin" >>"$GITHUB_PATH"
  "$folder/bin/kubectl-gmsa" --version
}

check() {
  local options=(--output github --fail-on "$FAIL_ON") file
  while read -r file; do
    [[ -z $file ]] || options+=(--filename "$file")
  done <<<"$FILES"
  [[ -z $STATE ]] || options+=(--state "$STATE")
  [[ -z $IGNORE ]] || options+=(--ignore "$IGNORE")
  kubectl-gmsa check "${options[@]}"
}

case ${1-} in
  install) install_plugin "$2" "$3" ;;
  check) check ;;
  *) failed "action.sh: unknown step ${1-}" ;;
esac
