#!/usr/bin/env bash
# Signs a serving certificate for the webhook with a CA that is kept in a folder, and puts it into a Secret.
set -euo pipefail

service=gmsa-webhook
namespace=gmsa-webhook
secret=gmsa-server-cert
folder=''
ca_days=3650
days=365
apply=true

usage() {
  cat <<USAGE
usage: $(basename "$0") --folder DIR [options]

  --folder DIR      where the CA is (ca.crt, ca.key); it is made where it is missing
  --service NAME    the webhook's Service (default: $service)
  --namespace NAME  its namespace (default: $namespace)
  --secret NAME     the Secret to write (default: $secret)
  --days N          how long the certificate lives (default: $days)
  --ca-days N       how long a new CA lives (default: $ca_days)
  --no-apply        leave tls.crt and tls.key in the folder, and the cluster alone
USAGE
}

die() {
  echo "error: $*" >&2
  exit 2
}

while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage && exit 0 ;;
    --no-apply) apply=false && shift && continue ;;
    --folder | --service | --namespace | --secret | --days | --ca-days) [ $# -ge 2 ] || die "$1 needs a value" ;;
    *) die "unknown option $1 (--help lists them)" ;;
  esac
  case $1 in
    --folder) folder=$2 ;;
    --service) service=$2 ;;
    --namespace) namespace=$2 ;;
    --secret) secret=$2 ;;
    --days) days=$2 ;;
    --ca-days) ca_days=$2 ;;
  esac
  shift 2
done

[ -n "$folder" ] || die "--folder is missing"
[[ $days =~ ^[0-9]+$ && $ca_days =~ ^[0-9]+$ ]] || die "--days and --ca-days take numbers"
# These values become lines of OpenSSL's configuration: a line break in them could request anything, CA:TRUE included.
label='^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'
[[ $service =~ $label ]] || die "--service $(printf %q "$service") is not a lower-case DNS label"
[[ $namespace =~ $label ]] || die "--namespace $(printf %q "$namespace") is not a lower-case DNS label"
[[ $secret =~ ^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$ ]] || die "--secret $(printf %q "$secret") is not a Secret's name"
commands=(openssl)
! $apply || commands+=(kubectl)
for command in "${commands[@]}"; do
  command -v "$command" >/dev/null || die "$command is not installed"
done

umask 077
mkdir -p "$folder"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

new_key() {
  openssl ecparam -name prime256v1 -genkey -noout -out "$work/sec1.key"
  openssl pkcs8 -topk8 -nocrypt -in "$work/sec1.key" -out "$1"
}

if [ ! -e "$folder/ca.crt" ] && [ ! -e "$folder/ca.key" ]; then
  new_key "$folder/ca.key"
  openssl req -x509 -new -key "$folder/ca.key" -days "$ca_days" -subj "/CN=gmsa-webhook CA" \
    -addext basicConstraints=critical,CA:TRUE,pathlen:0 -addext keyUsage=critical,keyCertSign,cRLSign -out "$folder/ca.crt"
  echo "made a CA: $folder/ca.crt"
fi
for file in ca.crt ca.key; do
  [ -r "$folder/$file" ] || die "cannot read $folder/$file"
done

host=$service.$namespace.svc
cat >"$work/extensions" <<EXTENSIONS
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
subjectAltName = DNS:$host, DNS:$service.$namespace, DNS:$service
EXTENSIONS
new_key "$work/tls.key"
openssl req -new -key "$work/tls.key" -subj "/CN=$service" -out "$work/request.pem"
openssl x509 -req -in "$work/request.pem" -CA "$folder/ca.crt" -CAkey "$folder/ca.key" -days "$days" \
  -set_serial "0x$(openssl rand -hex 15)" -extfile "$work/extensions" -out "$work/tls.crt" 2>/dev/null ||
  die "the CA in $folder cannot sign: are ca.crt and ca.key a pair?"
openssl verify -CAfile "$folder/ca.crt" "$work/tls.crt" >/dev/null || die "the CA in $folder does not verify what it signed: has it expired?"
mv "$work/tls.key" "$work/tls.crt" "$folder/"
echo "signed a certificate for $host; $(openssl x509 -in "$folder/tls.crt" -noout -enddate)"

$apply || exit 0
# Server-side apply keeps no copy of the key in an annotation.
kubectl -n "$namespace" create secret generic "$secret" --type=kubernetes.io/tls --dry-run=client -o yaml \
  --from-file=tls.crt="$folder/tls.crt" --from-file=tls.key="$folder/tls.key" --from-file=ca.crt="$folder/ca.crt" |
  kubectl apply --server-side --force-conflicts --field-manager=gmsa-webhook-certificate -f -
