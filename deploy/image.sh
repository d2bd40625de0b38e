#!/usr/bin/env bash
# Builds the image of the webhook, of gmsa-tickets or of the plugin for one architecture, starts it as a kubelet would, and writes it as an
# OCI archive to target/image, with its bill of materials (deploy/plugin.sh writes the plugin's). Needs Rust, a C compiler, Python 3,
# curl, openssl and buildah, but no daemon, no registry and no network; for a foreign architecture its Rust target, its C compiler and
# qemu-user-static; root, or `buildah unshare deploy/image.sh`. The variable IMAGE is the name under which the webhook's image is published;
# the other images are beside it.
# usage: deploy/image.sh [amd64|arm64 [gmsa-webhook|gmsa-tickets|kubectl-gmsa]]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly ARCH=${1:-amd64} PROGRAM=${2:-gmsa-webhook}
readonly LIMIT=12 # MiB, of the binary of the webhook or of gmsa-tickets
# shellcheck source=deploy/common.sh
. deploy/common.sh

failed() {
  printf 'image: %s\n' "$*" >&2
  exit 1
}

case $ARCH in
  amd64) target=x86_64-unknown-linux-gnu linker=x86_64-linux-gnu-gcc ;;
  arm64) target=aarch64-unknown-linux-gnu linker=aarch64-linux-gnu-gcc ;;
  *) failed "unknown architecture $ARCH: amd64 and arm64 are known" ;;
esac
context=$target_folder/image
webhook=${IMAGE:-localhost/gmsa-webhook}
case $PROGRAM in
  gmsa-webhook) what=webhook image=$webhook file=Dockerfile ;;
  gmsa-tickets) what=tickets image=${webhook%/*}/gmsa-tickets file=Dockerfile.tickets ;;
  kubectl-gmsa) what=plugin image=${webhook%/*}/kubectl-gmsa file=Dockerfile.plugin ;;
  *) failed "unknown program $PROGRAM: gmsa-webhook, gmsa-tickets and kubectl-gmsa are known" ;;
esac
image+=:$version
[[ $ARCH == amd64 ]] || image+=-$ARCH
archive=$context/$PROGRAM-$version-$ARCH.oci.tar
epoch=$(git log -1 --format=%ct)
# Both settings work everywhere, in a container too.
export BUILDAH_ISOLATION=chroot STORAGE_DRIVER=vfs

# A static binary with glibc: its allocator is faster with many threads than musl's. Since glibc 2.34 it looks up names without shared
# libraries where nsswitch.conf is missing, as in the image.
build_static() {
  local binary=$target_folder/$target/dist/$PROGRAM
  build_dist dist "$target" "$linker" "-C target-feature=+crt-static $(rust_lld)" "$PROGRAM"
  check_size "$binary" "$LIMIT"
  if readelf --program-headers --wide "$binary" | grep -q ' INTERP '; then
    failed "$binary is not static: it names a dynamic loader"
  fi
  cp "$binary" "$context/$ARCH/$PROGRAM"
  python3 deploy/sbom.py "$target" "$linker" "$PROGRAM" >"$context/$PROGRAM-$version-$ARCH.cdx.json"
}

# The program of the plugin's archive.
build_plugin() {
  local packed
  packed=$(mktemp -d)
  deploy/plugin.sh "linux-$ARCH" "$packed" >/dev/null
  tar --extract --gzip --file "$packed/kubectl-gmsa-$version-linux-$ARCH.tar.gz" --directory "$context/$ARCH" kubectl-gmsa
  rm -rf "$packed"
}

package() {
  # The commit's time, so that the same commit makes the same image.
  buildah build --quiet --platform "linux/$ARCH" --timestamp "$epoch" --build-arg "VERSION=$version" \
    --build-arg "REVISION=$(git rev-parse HEAD)" --tag "$image" --file "$file" "$context" >/dev/null
}

# The image in one file. Its bytes depend on the image alone.
write_archive() {
  local layout
  layout=$(mktemp -d)
  buildah push --quiet --format oci "$image" "oci:$layout:$image"
  tar --create --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --directory "$layout" blobs index.json oci-layout >"$archive"
  rm -rf "$layout"
}

# Checks the stored image: only the binary, a numeric user, the size limit.
inspect() {
  local root=$1 container=$2 size user
  [[ $(cd "$root" && find . -type f) == "./$PROGRAM" ]] || failed "the image holds more than the binary: $(ls "$root")"
  user=$(buildah inspect --format '{{.OCIv1.Config.User}} {{.OCIv1.Config.Entrypoint}}' "$container")
  [[ $user == "65532:65532 [/$PROGRAM]" ]] || failed "the image runs as $user"
  size=$(du --bytes --summarize "$root" | cut -f 1)
  echo "$image: $size bytes"
}

# start ROOT EXTRAS COMMAND...: runs COMMAND as the image's user with the image's root, read-only, and the folders in EXTRAS mounted beside the binary.
start() {
  local root=$1 extras=$2
  shift 2
  # shellcheck disable=SC2016 # expanded by the inner shell
  exec unshare --mount bash -euc '
    mount -t overlay -o "ro,lowerdir=$1:$2" image "$3"
    cd "$3" && shift 3
    exec chroot --userspec=65532:65532 --groups=65532 . "$@"' \
    start "$root" "$extras" "$extras/mnt" "$@"
}

# until_ready PROCESS LOG: waits until a server that was started says that it is ready.
until_ready() {
  local process=$1 log=$2 address
  for _ in {1..100}; do
    address=$(sed -n 's/.* admin=\([^ ]*\).*/\1/p' "$log")
    if [[ -n $address && $(curl --silent --output /dev/null --write-out '%{http_code}' "http://$address/readyz") == 200 ]]; then
      [[ $(awk '/^Uid:/ {print $2}' "/proc/$process/status") == 65532 ]] || failed "it does not run as its own user"
      return
    fi
    kill -0 "$process" 2>/dev/null || failed "it ended: $(tail -n 1 "$log")"
    sleep 0.1
  done
  kill "$process"
  failed "it is not ready after 10 seconds: $(tail -n 1 "$log")"
}

# end PROCESS LOG: ends a server as a kubelet does.
end() {
  kill "$1"
  wait "$1" || failed "it did not end well: $(tail -n 1 "$2")"
  echo "$image: starts as 65532 with a read-only root, and ends on SIGTERM"
}

# Starts the server from the image.
try_webhook() {
  local root=$1 extras=$2 log=$2/log process
  mkdir "$extras/specs" "$extras/tls"
  cp examples/credspec.yaml "$extras/specs"
  ${emulator[0]:+"qemu-$machine-static"} "$root/gmsa-webhook" certs issue "$extras/tls" --name localhost >/dev/null
  chmod -R a+rX "$extras"
  start "$root" "$extras" "${emulator[@]}" /gmsa-webhook serve --standalone /specs --tls-cert /tls/tls.crt --tls-key /tls/tls.key \
    --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0 >"$log" 2>&1 &
  process=$!
  until_ready "$process" "$log"
  end "$process" "$log"
}

# certificate NAME CA MORE...: makes NAME.crt and NAME.key, signed by CA.key.
certificate() {
  local name=$1 signer=(-CA "$2.crt" -CAkey "$2.key")
  [[ $name != "$2" ]] || signer=()
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$name.key" -out "$name.crt" -days 2 \
    -subj "/CN=$name" "${signer[@]}" "${@:3}" 2>/dev/null
}

# Asks the agent for tickets that it has not got, then starts the broker and has the agent ask it. Neither has a cluster or a domain.
try_tickets() {
  local root=$1 extras=$2 log=$2/log answer process port server
  # What a runtime mounts, and the agent reads instead of a token.
  mkdir "$extras/gmsa" "$extras/dev" && touch "$extras/dev/null"
  (cd "$extras" && certificate ca ca && certificate tls ca -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE)
  echo 'domains: [{name: contoso.com, user: broker@contoso.com, caFile: /ca.crt, passwordFile: /password}]' >"$extras/config.yaml"
  echo secret >"$extras/password"
  server='{server: "https://127.0.0.1:9", certificate-authority: /ca.crt}'
  printf '{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: c}}], %s}\n' \
    "clusters: [{name: c, cluster: $server}], users: [{name: c, user: {token: none}}]" >"$extras/kubeconfig"
  chmod -R a+rX "$extras"
  answer=$(start "$root" "$extras" "${emulator[@]}" /gmsa-tickets agent ready --folder /gmsa 2>&1) && failed "it finds tickets where there are none: $answer"
  [[ $answer == *'no tickets'* ]] || failed "it says where there are no tickets: $answer"
  KUBECONFIG=/kubeconfig start "$root" "$extras" "${emulator[@]}" /gmsa-tickets serve --config /config.yaml --tls-cert /tls.crt --tls-key /tls.key \
    --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0 --shutdown-delay 0s >"$log" 2>&1 &
  process=$!
  until_ready "$process" "$log"
  port=$(sed -n 's/.* address=[^ ]*:\([0-9]*\) .*/\1/p' "$log")
  answer=$(start "$root" "$extras" "${emulator[@]}" /gmsa-tickets agent test --broker localhost --broker-address "127.0.0.1:$port" \
    --broker-ca "$(cat "$extras/ca.crt")" 2>&1) || failed "the agent says of the broker: $answer"
  end "$process" "$log"
}

# Checks manifests with it.
try_plugin() {
  local root=$1 extras=$2 answer
  mkdir "$extras/manifests"
  cp examples/credspec.yaml examples/role.yaml examples/role-binding.yaml examples/deployment-pod.yaml "$extras/manifests"
  chmod -R a+rX "$extras"
  answer=$(start "$root" "$extras" "${emulator[@]}" /kubectl-gmsa check -f /manifests) || failed "it finds mistakes in the examples: $answer"
  [[ $answer == *'gets its contents'* ]] || failed "it says of the examples: $answer"
  echo "$image: checks manifests as 65532 with a read-only root"
}

# Removes the webhook (after a failure), the container and the folder.
clean_up() {
  jobs -p | xargs --no-run-if-empty kill
  buildah rm "$container" >/dev/null
  rm -rf "$extras"
}

check() {
  local answer
  extras=$(mktemp -d)
  container=$(buildah from --pull-never --platform "linux/$ARCH" "$image")
  trap clean_up EXIT
  local root
  root=$(buildah mount "$container")
  chmod 0755 "$extras" && mkdir "$extras/mnt"
  inspect "$root" "$container"
  emulator=()
  machine=${target%%-*}
  if [[ $machine != "$(uname -m)" ]]; then
    cp "$(command -v "qemu-$machine-static")" "$extras/emulator"
    emulator=(/emulator)
  fi
  answer=$(start "$root" "$extras" "${emulator[@]}" "/$PROGRAM" --version)
  [[ $answer == "$PROGRAM $version" ]] || failed "--version says $answer"
  "try_$what" "$root" "$extras"
}

mkdir -p "$context/$ARCH"
if [[ $what == plugin ]]; then build_plugin; else build_static; fi
package
check
write_archive
