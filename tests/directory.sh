#!/usr/bin/env bash
# Runs the plugin's tests, or those of gmsa-tickets, against a real Active Directory domain: Samba of Debian 13, in a network namespace of its own, with LDAP over TLS, a DNS
# that knows its controller, and a KDS root key, so that it makes the passwords of group Managed Service Accounts. It needs root, mmdebstrap,
# iproute2, openssl and `script` of util-linux, and the mirror that apt uses; what it installs it keeps in target/directory. The tests of
# gmsa-tickets need kube-apiserver, kube-controller-manager and etcd too, in the folder that KUBEBUILDER_ASSETS names. Those with a node need
# kube-scheduler, kubelet and kube-proxy there, version 2 of containerd, its shim and ctr in the folder that CONTAINERD_ASSETS names, and helm, kubectl,
# runc, the plugins of CNI, iptables and conntrack.
# usage: tests/directory.sh [--tickets|--node] [WORD...] [--write]   words pick tests; --write updates docs/measurements.md; --node has more options:
# crates/tickets/tests/node/main.rs
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# CONTOSO.COM, whose only controller is dc1.contoso.com.
readonly ADDRESS=10.0.0.1
# NORTHWIND.COM, for the tests of gmsa-tickets alone: another forest, which trusts the first one and is trusted by it.
readonly OTHER_ADDRESS=10.0.0.2
# The controller; clients of LDAP and Kerberos; what the tests of gmsa-tickets use beside them: a web server, other clocks, the DNS of a cluster; the clients of
# docs/linux-clients.md, and a database for them.
readonly PACKAGES=samba-ad-dc,samba-ad-provision,samba-dsdb-modules,python3-samba,python3-cryptography,ldap-utils,ldb-tools,krb5-user,libsasl2-modules-gssapi-mit,python3-gssapi,libfaketime,dnsmasq-base,curl,postgresql,python3-psycopg,openjdk-21-jdk-headless,apache2,libapache2-mod-auth-gssapi
folder=$(cargo metadata --format-version 1 --no-deps --offline | python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')/directory
root=$folder/root
tls=$folder/tls

# It starts itself again, in a namespace.
case ${1-} in
  --tickets) shift && export DIRECTORY_TEST=domain ;;
  --node) shift && export DIRECTORY_TEST=node ;;
esac
test=${DIRECTORY_TEST-directory}
if [[ $test == domain && ${*: -1} == --write ]]; then
  export DIRECTORY_WRITE=1
  set -- "${@:1:$#-1}"
fi
# What is measured is built as it is released.
profile=${DIRECTORY_WRITE:+--profile=dist}

failed() {
  printf 'directory: %s\n' "$*" >&2
  exit 2
}

# within COMMAND...: in the folder that Samba is installed in.
within() {
  chroot "$root" "$@"
}

install_samba() {
  local mirror
  cmp --silent <(printf '%s\n' "$PACKAGES") "$folder/packages" && return
  mirror=$(apt-cache policy | grep -oE 'https?://[^ ]+/debian ' | grep -v security | sort -u | head -1 | tr -d ' ')
  mkdir -p "$folder"
  rm -rf "$root"
  mmdebstrap --quiet --variant=minbase \
    --include="$PACKAGES" \
    trixie "$root" "$mirror" >"$folder/install.log" 2>&1 || failed "cannot install Samba: $folder/install.log says why"
  printf '%s\n' "$PACKAGES" >"$folder/packages"
}

# certificate FILE NAMES HOST: of the authority.
certificate() {
  openssl req -newkey rsa:2048 -nodes -keyout "$1key.pem" -out request.pem -subj "/CN=$3"
  openssl x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out "$1cert.pem" -extfile <(printf 'subjectAltName=%s' "$2")
}

# Certificates for the controller, which has the name of the domain too, for that of a domain whose clock a test moves, and for a workstation, which has not; another
# authority that made none.
make_certificates() {
  rm -rf "$tls" && mkdir -p "$tls"
  (
    cd "$tls"
    for authority in ca other-ca; do
      openssl req -x509 -newkey rsa:2048 -nodes -keyout $authority.key -out $authority.pem -days 2 -subj "/CN=$authority"
    done
    certificate '' DNS:dc1.contoso.com,DNS:contoso.com dc1.contoso.com
    certificate roll- DNS:dc1.roll.test dc1.roll.test
    certificate ws42- DNS:ws42.contoso.com ws42.contoso.com
  ) 2>/dev/null
  rm -rf "$root/tls" && cp -r "$tls" "$root/tls" && chmod 600 "$root/tls/"*key.pem
}

provision() {
  rm -rf "$root/dc"
  printf '127.0.0.1 localhost\n%s dc1.contoso.com dc1 recipes.contoso.com\n10.0.0.5 dc1.roll.test\n' "$ADDRESS" >"$root/etc/hosts"
  printf 'nameserver %s\n' "$ADDRESS" >"$root/etc/resolv.conf"
  within samba-tool domain provision --realm=CONTOSO.COM --domain=CONTOSO --adminpass='Passw0rd!Admin' --server-role=dc \
    --dns-backend=SAMBA_INTERNAL --targetdir=/dc --host-name=dc1 --host-ip="$ADDRESS" --function-level=2016 --base-schema=2019 \
    --option='ad dc functional level = 2016'
  sed -i '/dns forwarder/d; s#log file = .*#log file = /log.%m#' "$root/dc/etc/smb.conf"
  # Other hosts of the tests have addresses of 127.0.0.0/8.
  sed -i '/^\[global\]/a \\ttls cafile = /tls/ca.pem\n\ttls certfile = /tls/cert.pem\n\ttls keyfile = /tls/key.pem\n\tserver services = ldap, kdc, cldap, dns\n\tinterfaces = '"$ADDRESS"'\n\tbind interfaces only = yes' \
    "$root/dc/etc/smb.conf"
  # Ten hours after its effective time it is used; the tests of changed passwords make keys of some days before.
  within samba-tool domain kds root-key create --configfile=/dc/etc/smb.conf -H /dc/private/sam.ldb \
    --use-start-time="$(date -u -d '-30 days' +%Y-%m-%dT%H:%M:%S+00:00)"
}

# sid FOLDER NAME: of a domain.
sid() {
  within ldbsearch -H "/$1/private/sam.ldb" -s base -b "$2" objectSid | sed -n 's/^objectSid: //p'
}

# Its user websvc has the names of services, and AES keys.
provision_other() {
  local name
  rm -rf "$root/dc2"
  within samba-tool domain provision --realm=NORTHWIND.COM --domain=NORTHWIND --adminpass='Passw0rd!Admin' --server-role=dc \
    --dns-backend=SAMBA_INTERNAL --targetdir=/dc2 --host-name=dc1 --host-ip="$OTHER_ADDRESS" --function-level=2016 --base-schema=2019 \
    --option='ad dc functional level = 2016'
  mkdir "$root/dc2/run"
  sed -i '/dns forwarder/d; s#log file = .*#log file = /log2.%m#' "$root/dc2/etc/smb.conf"
  sed -i '/^\[global\]/a \\tserver services = ldap, kdc, cldap, dns\n\tinterfaces = '"$OTHER_ADDRESS"'\n\tbind interfaces only = yes\n\tpid directory = /dc2/run\n\tncalrpc dir = /dc2/run/ncalrpc' \
    "$root/dc2/etc/smb.conf"
  # The first one's DNS asks the other's, not both ways.
  sed -i '/^\[global\]/a \\tdns forwarder = '"$OTHER_ADDRESS" "$root/dc/etc/smb.conf"
  within samba-tool user create websvc 'Passw0rd!Service' --configfile=/dc2/etc/smb.conf -H /dc2/private/sam.ldb
  within ldbmodify -H /dc2/private/sam.ldb <<<$'dn: CN=websvc,CN=Users,DC=northwind,DC=com\nchangetype: modify\nadd: msDS-SupportedEncryptionTypes\nmsDS-SupportedEncryptionTypes: 24'
  for name in HTTP/web.northwind.com MSSQLSvc/sql.northwind.com:1433; do
    within samba-tool spn add "$name" websvc --configfile=/dc2/etc/smb.conf -H /dc2/private/sam.ldb
  done
  cp tests/trust.py "$root/trust.py"
  within python3 /trust.py /dc northwind.com NORTHWIND "$(sid dc2 DC=northwind,DC=com)"
  within python3 /trust.py /dc2 contoso.com CONTOSO "$(sid dc DC=contoso,DC=com)"
}

answers() {
  (: <"/dev/tcp/$1/$2") 2>/dev/null
}

# serve FOLDER ADDRESS PORT: starts the controller of a domain.
serve() {
  within samba -s "/$1/etc/smb.conf" -F -M prefork >"$folder/samba-$1.log" 2>&1 </dev/null &
  for _ in $(seq 300); do
    answers "$2" "$3" && return
    sleep 0.1
  done
  failed "the domain controller does not answer: $folder/samba-$1.log"
}

# The broker finds the controller by DNS, as in a pod.
resolve_domain() {
  local file
  for file in hosts resolv.conf; do
    mount --bind "$root/etc/$file" "$(readlink -f "/etc/$file")"
  done
}

# In namespaces of its own: everything that was started ends with them.
serve_and_test() {
  ip link set lo up
  ip address add "$ADDRESS/32" dev lo
  mount --bind /proc "$root/proc"
  mount --rbind /dev "$root/dev"
  make_certificates
  provision >"$folder/provision.log" 2>&1 || failed "cannot make the domain: $folder/provision.log says why"
  if [[ $test == domain ]]; then
    provision_other >"$folder/provision-other.log" 2>&1 || failed "cannot make the other domain: $folder/provision-other.log says why"
    ip address add "$OTHER_ADDRESS/32" dev lo
    serve dc2 "$OTHER_ADDRESS" 88
  fi
  serve dc "$ADDRESS" 636
  local options=(--test-threads=2)
  case $test in
    domain) resolve_domain ;;
    node) options=() ;;
  esac
  DOMAIN_ROOT=$root cargo test --locked --offline ${profile:+"$profile"} --test "$test" -- "${options[@]}" "$@"
}

# What does not end with the namespaces of a node: the cgroups of its pods, and its files.
remove_node() {
  find /sys/fs/cgroup -depth -type d -path "*/$NODE_CGROUP*" -exec rmdir {} + || true
  rm -rf "$NODE_FOLDER"
}

if [[ ${1-} == --in-namespace ]]; then
  shift
  serve_and_test "$@"
  exit
fi
[[ $(id -u) -eq 0 ]] || failed "needs root, for namespaces and chroot"
for tool in mmdebstrap ip openssl script unshare; do
  command -v $tool >/dev/null || failed "needs $tool"
done
install_samba
cargo test --locked ${profile:+"$profile"} --test "$test" --no-run
if [[ $test == node ]]; then
  for tool in conntrack helm iptables kubectl runc; do
    command -v $tool >/dev/null || failed "needs $tool"
  done
  cargo build --locked --bin gmsa-webhook --bin kubectl-gmsa
  export NODE_CGROUP=gmsa-node-$$ NODE_FOLDER=$folder/node-$$
  mkdir "$NODE_FOLDER"
  trap remove_node EXIT
fi
unshare --net --mount --pid --fork --kill-child --mount-proc "$0" --in-namespace "$@"
