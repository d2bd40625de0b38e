#!/usr/bin/env bash
# Requests a serving certificate for the webhook from a signer of the cluster, and puts it into a Secret.
set -euo pipefail

service=gmsa-webhook
namespace=gmsa-webhook
secret=gmsa-server-cert
signer=''
ca=''
lifetime=''
approve=true
patience=120

usage() {
  cat <<USAGE
usage: $(basename "$0") --signer NAME [options]

  --signer NAME       who is to sign: kubernetes.io/kubelet-serving, beta.eks.amazonaws.com/app-serving, or one of yours
  --service NAME      the webhook's Service (default: $service)
  --namespace NAME    its namespace (default: $namespace)
  --secret NAME       the Secret to write (default: $secret)
  --ca FILE           the signer's CA (default: the key ca.crt of the ConfigMap kube-root-ca.crt)
  --lifetime SECONDS  how long the certificate is to live (default: what the signer gives)
  --no-approve        leave the approval to somebody else
  --wait SECONDS      how long to wait for the signer (default: $patience)
USAGE
}

die() {
  echo "error: $*" >&2
  exit 2
}

# Removes control characters from text of a server, which a terminal would act on.
plain() { LC_ALL=C tr -cd '[:print:]'; }

while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage && exit 0 ;;
    --no-approve) approve=false && shift && continue ;;
    --signer | --service | --namespace | --secret | --ca | --lifetime | --wait) [ $# -ge 2 ] || die "$1 needs a value" ;;
    *) die "unknown option $1 (--help lists them)" ;;
  esac
  case $1 in
    --signer) signer=$2 ;;
    --service) service=$2 ;;
    --namespace) namespace=$2 ;;
    --secret) secret=$2 ;;
    --ca) ca=$2 ;;
    --lifetime) lifetime=$2 ;;
    --wait) patience=$2 ;;
  esac
  shift 2
done

[ -n "$signer" ] || die "--signer is missing (--help lists the usual ones)"
[[ $patience =~ ^[0-9]+$ ]] || die "--wait takes seconds"
[[ $lifetime =~ ^[0-9]*$ ]] || die "--lifetime takes seconds"
# These values become arguments of OpenSSL and lines of YAML: a line break or a comma in them could request anything.
label='^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'
subdomain='[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?'
[[ $service =~ $label ]] || die "--service $(printf %q "$service") is not a lower-case DNS label"
[[ $namespace =~ $label ]] || die "--namespace $(printf %q "$namespace") is not a lower-case DNS label"
[[ $secret =~ ^$subdomain$ ]] || die "--secret $(printf %q "$secret") is not a Secret's name"
[[ $signer =~ ^$subdomain/$subdomain$ ]] || die "--signer $(printf %q "$signer") is not a signer's name, such as example.com/my-signer"
[ -z "$ca" ] || [ -r "$ca" ] || die "cannot read $ca"
for command in kubectl openssl; do
  command -v "$command" >/dev/null || die "$command is not installed"
done
kubectl get namespace "$namespace" -o name >/dev/null || die "there is no namespace $namespace, or it cannot be read"

host=$service.$namespace.svc
umask 077
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

case $signer in
  # These sign for nodes only.
  kubernetes.io/kubelet-serving | beta.eks.amazonaws.com/app-serving) subject="/O=system:nodes/CN=system:node:$host" ;;
  # A common name holds 64 characters at most, and clients ignore it.
  *) subject="/CN=$service" ;;
esac
openssl ecparam -name prime256v1 -genkey -noout -out "$work/sec1.key"
openssl pkcs8 -topk8 -nocrypt -in "$work/sec1.key" -out "$work/tls.key"
openssl req -new -key "$work/tls.key" -subj "$subject" \
  -addext "subjectAltName=DNS:$host,DNS:$service.$namespace,DNS:$service" -out "$work/request.pem"

# The API server completes the name, so two requests within a second differ.
created=$({
  cat <<REQUEST
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata:
  generateName: $host-
spec:
  signerName: $signer
  request: $(base64 <"$work/request.pem" | tr -d '\n')
  usages: ["digital signature", "server auth"]
REQUEST
  [ -z "$lifetime" ] || echo "  expirationSeconds: $lifetime"
} | kubectl create -f - -o name | plain)
echo "$created created"
request=${created#*/}
if $approve; then
  kubectl certificate approve "$request"
else
  echo "waiting for somebody to run: kubectl certificate approve $request"
fi

deadline=$((SECONDS + patience))
while :; do
  kubectl get csr "$request" -o 'jsonpath={.status.certificate}' | base64 -d >"$work/tls.crt"
  [ ! -s "$work/tls.crt" ] || break
  refusal=$(kubectl get csr "$request" -o 'jsonpath={.status.conditions[?(@.type!="Approved")].message}' | plain)
  [ -z "$refusal" ] || die "$signer refuses: $refusal"
  [ $SECONDS -lt $deadline ] || die "$signer has not signed $request within $patience s: is there such a signer, and does it sign for Services? (kubectl describe csr $request)"
  sleep 1
done

if [ -n "$ca" ]; then
  cp "$ca" "$work/ca.crt"
else
  kubectl -n "$namespace" get configmap kube-root-ca.crt -o 'jsonpath={.data.ca\.crt}' >"$work/ca.crt"
fi
# The certificates after the first one are the chain up to the CA.
openssl verify -CAfile "$work/ca.crt" -untrusted "$work/tls.crt" "$work/tls.crt" >/dev/null ||
  die "the CA does not verify the certificate: name the signer's CA with --ca FILE"

# Server-side apply keeps no copy of the key in an annotation.
kubectl -n "$namespace" create secret generic "$secret" --type=kubernetes.io/tls --dry-run=client -o yaml \
  --from-file=tls.crt="$work/tls.crt" --from-file=tls.key="$work/tls.key" --from-file=ca.crt="$work/ca.crt" |
  kubectl apply --server-side --force-conflicts --field-manager=gmsa-webhook-certificate -f -
echo "the certificate is in the Secret $namespace/$secret; $(openssl x509 -in "$work/tls.crt" -noout -enddate)"
