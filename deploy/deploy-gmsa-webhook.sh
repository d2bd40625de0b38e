#!/usr/bin/env bash
# Installs the GMSA webhook without Helm, or upgrades it in place: renders gmsa-webhook.yml.tpl, applies it, waits until it is
# ready. It never deletes the CRD, and the manifest file never holds a private key. See --help.
set -euo pipefail

readonly PROGRAM=${0##*/}
readonly CRD=gmsacredentialspecs.windows.k8s.io
readonly OLDEST_MINOR=28 # match conditions: without them the API server would ask about every pod
KUBECTL=${KUBECTL:-kubectl}
SOURCE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly SOURCE
readonly PARTS=(gmsa-webhook.yml.tpl gmsa-static-policies.yml.tpl gmsa-crd.yaml)

FILE=''
NAME=gmsa-webhook
NAMESPACE=gmsa-webhook
IMAGE=gmsa-webhook:0.1.0
CERTS_DIR=''
DRY_RUN=none
OVERWRITE=false
TOLERATE_MASTER=false
TIMEOUT=180
STATIC_POLICIES=''
ADMINS=''
ADMIN_USERS=''
ADMIN_GROUPS=''

usage() {
  cat <<USAGE
Installs the GMSA admission webhook into the cluster that kubectl is set up for, or upgrades it in place.

usage: $PROGRAM --file FILE [option...]

  --file FILE          where the manifests are written to; it is overwritten
  --name NAME          name of the objects [default: $NAME]
  --namespace NS       namespace of the webhook, created where it does not exist [default: $NAMESPACE]
  --image IMAGE        image of the webhook [default: $IMAGE]
  --certs-dir DIR      serve the certificate in DIR (tls.crt, tls.key, ca.crt), made there by openssl where there is none.
                       Without it the webhook makes and renews its own certificate
  --overwrite          replace the certificate in DIR
  --tolerate-master    let the webhook run on control plane nodes too
  --timeout SECONDS    how long to wait until the webhook is ready [default: $TIMEOUT]
  --static-policies FILE
                       also write the policies for the disk of the control plane, which protect the webhook from users
                       of the API (Kubernetes 1.37; docs/static-policies.md), to FILE; it is overwritten
  --admins NAMES       user:NAME and group:NAME, separated by commas: who may still change what those policies protect
  --dry-run[=client]   write FILE, say what would be applied, change nothing
  --dry-run=server     the same, but the API server checks every object; -dry-run=server is understood too
  --help, -h           print this

Exit status: 0 done; 1 the cluster refused something, or the webhook did not become ready in time; 2 wrong option, or kubectl,
the cluster or a permission is missing.
USAGE
}

say() { printf '%s\n' "$*"; }

# give_up MESSAGE: ends before anything was changed.
give_up() {
  printf '%s: %s\n' "$PROGRAM" "$*" >&2
  exit 2
}

# failed MESSAGE: ends after a step failed.
failed() {
  printf '%s: %s\n' "$PROGRAM" "$*" >&2
  exit 1
}

parse() {
  local option value
  while [[ $# -gt 0 ]]; do
    option=${1%%=*}
    case $option in
      --file | --name | --namespace | --image | --certs-dir | --timeout | --static-policies | --admins)
        if [[ $1 == *=* ]]; then
          value=${1#*=}
        elif [[ $# -gt 1 ]]; then
          value=$2
          shift
        else
          value=''
        fi
        [[ -n $value && $value != -* ]] || give_up "$option needs a value"
        case $option in
          --file) FILE=$value ;;
          --name) NAME=$value ;;
          --namespace) NAMESPACE=$value ;;
          --image) IMAGE=$value ;;
          --certs-dir) CERTS_DIR=$value ;;
          --timeout) TIMEOUT=$value ;;
          --static-policies) STATIC_POLICIES=$value ;;
          --admins) ADMINS=$value ;;
        esac
        ;;
      # One hyphen is accepted too, as in programs written in Go.
      --dry-run | -dry-run)
        case ${1#"$option"} in
          '' | =client) DRY_RUN=client ;;
          =server) DRY_RUN=server ;;
          *) give_up "unknown kind of dry run ${1#*=}: client and server are known" ;;
        esac
        ;;
      --overwrite | --tolerate-master | --help | -h)
        [[ $1 == "$option" ]] || give_up "$option takes no value"
        case $option in
          --overwrite) OVERWRITE=true ;;
          --tolerate-master) TOLERATE_MASTER=true ;;
          --help | -h) usage && exit 0 ;;
        esac
        ;;
      *) give_up "unknown option $1 (--help lists them)" ;;
    esac
    shift
  done
}

# check_file OPTION FILE: FILE must be writable, and not be a file that this script reads.
check_file() {
  local part
  [[ ! -d $2 && $2 != */ ]] || give_up "$1 $2 is a folder"
  [[ $2 != *,* ]] || give_up "$1 $2 has a comma, at which kubectl splits the names of files"
  for part in "${PARTS[@]}"; do
    [[ ! $2 -ef $SOURCE/$part ]] || give_up "$1 $2 is a file of this script: it would be overwritten"
  done
  [[ -d $(dirname "$2") ]] || give_up "$1 $2: its folder does not exist"
  [[ -w $2 || (! -e $2 && -w $(dirname "$2")) ]] || give_up "$1 $2 cannot be written"
}

# Splits $ADMINS into JSON lists of users and of groups. They stay apart: a user may be able to choose the name of a group.
read_admins() {
  local admin name one='(user|group):[A-Za-z0-9 :._@/+=-]+'
  local -a admins
  [[ $ADMINS =~ ^$one(,$one)*$ ]] || give_up "--admins $ADMINS is not a list of user:NAME and group:NAME, separated by commas"
  IFS=, read -ra admins <<<"$ADMINS"
  for admin in "${admins[@]}"; do
    name=${admin#*:}
    case $name in
      system:anonymous | system:authenticated | system:serviceaccounts | system:unauthenticated | \
        "system:serviceaccounts:$NAMESPACE" | "system:serviceaccount:$NAMESPACE:$NAME")
        give_up "--admins has $name, which is what the policies protect against"
        ;;
    esac
    case $admin in
      user:kubeadm:cluster-admins | user:system:masters | user:system:serviceaccounts:*)
        give_up "--admins has $admin, which is a group: group:$name"
        ;;
      group:system:serviceaccount:*) give_up "--admins has $admin, which is a user: user:$name" ;;
      user:*) ADMIN_USERS+=${ADMIN_USERS:+,}\"$name\" ;;
      group:*) ADMIN_GROUPS+=${ADMIN_GROUPS:+,}\"$name\" ;;
    esac
  done
}

# is_same_file FILE FILE: whether both paths name one file, which may not exist yet.
is_same_file() {
  [[ $1 -ef $2 || ($(basename "$1") == "$(basename "$2")" && $(dirname "$1") -ef $(dirname "$2")) ]]
}

check_options() {
  local label='^[a-z0-9]([a-z0-9-]*[a-z0-9])?$'
  # The values that YAML does not read as text: the template has names without quotes.
  local no_text='^(y|n|yes|no|on|off|true|false|null|[0-9]+(e[0-9]+)?|0x[0-9a-f]+|0o[0-7]+|0b[01]+)$'
  # A host has a dot, a port, or is localhost; the path is in lower case. A first part in upper case, which container runtimes take for a host too, is a slip.
  local name='[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?' path='[a-z0-9]+((\.|__?|-+)[a-z0-9]+)*'
  local host="((localhost|$name(\.$name)+|\[[0-9A-Fa-f:]+\])(:[0-9]+)?|$name:[0-9]+)"
  local part image="^($host/)?$path(/$path)*(:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?(@sha256:[0-9a-f]{64})?$"
  [[ -n $FILE ]] || give_up '--file is missing: where shall the manifests be written to?'
  check_file --file "$FILE"
  [[ -z $STATIC_POLICIES ]] || check_file --static-policies "$STATIC_POLICIES"
  [[ -z $STATIC_POLICIES ]] || ! is_same_file "$STATIC_POLICIES" "$FILE" || give_up '--static-policies and --file name the same file'
  [[ -z $STATIC_POLICIES || -n $ADMINS ]] \
    || give_up '--static-policies needs --admins: the users and groups that may upgrade the webhook, such as group:kubeadm:cluster-admins'
  [[ -z $ADMINS || -n $STATIC_POLICIES ]] || give_up '--admins is for the policies of --static-policies FILE'
  [[ -z $ADMINS ]] || read_admins
  [[ -z $CERTS_DIR || -d $CERTS_DIR || ! -e $CERTS_DIR ]] || give_up "--certs-dir $CERTS_DIR is not a folder"
  [[ ! $CERTS_DIR =~ [,=] ]] || give_up "--certs-dir $CERTS_DIR has a comma or an equals sign, at which kubectl splits it"
  # The Service has this name, so it begins with a letter.
  [[ $NAME =~ $label && $NAME == [a-z]* && ${#NAME} -le 50 ]] \
    || give_up "--name $NAME is not a lower-case DNS label of at most 50 characters that begins with a letter"
  [[ $NAMESPACE =~ $label && ${#NAMESPACE} -le 63 ]] \
    || give_up "--namespace $NAMESPACE is not a lower-case DNS label of at most 63 characters"
  [[ ! $NAME =~ $no_text ]] || give_up "--name $NAME is a number or a boolean in YAML: choose another name"
  [[ ! $NAMESPACE =~ $no_text ]] || give_up "--namespace $NAMESPACE is a number or a boolean in YAML: choose another namespace"
  [[ $IMAGE != *://* ]] || give_up "--image $IMAGE is a URL: an image's name has no ${IMAGE%%://*}://"
  [[ $IMAGE =~ $image ]] || give_up "--image $IMAGE is not an image's name in lower case, such as registry.example.com/gmsa-webhook:0.1.0"
  [[ ! $IMAGE =~ k8s-gmsa-webhook(:|@|$) ]] || give_up "--image $IMAGE is the Go webhook's image; this script installs another program"
  [[ $TIMEOUT =~ ^[1-9][0-9]{0,4}$ ]] || give_up "--timeout $TIMEOUT is not a number of seconds"
  for part in "${PARTS[@]}"; do
    [[ -r $SOURCE/$part ]] || give_up "$part is missing next to this script, in $SOURCE"
  done
}

# Removes control characters from text of a server, which a terminal would act on.
plain() { LC_ALL=C tr -cd '[:print:]'; }

# The first line of an error of kubectl, without its prefix.
complaint() {
  local line
  line=$(grep -v '^[EIW][0-9]\{4\} ' <<<"$1" | head -n 1 | plain)
  line=${line#error: }
  printf '%s' "${line#Error from server (*): }"
}

check_cluster() {
  command -v "$KUBECTL" >/dev/null || give_up "kubectl is missing: install it, or set KUBECTL to its path"
  local version minor
  version=$("$KUBECTL" get --raw /version --request-timeout=15s 2>&1) \
    || give_up "no cluster: $(complaint "$version")"
  minor=$(sed -n 's/.*"minor": *"\([0-9]*\).*/\1/p' <<<"$version")
  [[ -n $minor ]] || give_up "no cluster: the answer to /version is not one of Kubernetes"
  [[ $minor -ge $OLDEST_MINOR ]] \
    || give_up "Kubernetes 1.$minor is too old for this script: it needs 1.$OLDEST_MINOR; install with the Helm chart"
  MANAGER_OF_NAMESPACE=$("$KUBECTL" get namespace "$NAMESPACE" --ignore-not-found \
    -o 'jsonpath={.metadata.labels.app\.kubernetes\.io/managed-by} manages it' 2>&1) \
    || give_up "no rights: $(complaint "$MANAGER_OF_NAMESPACE")"
}

namespace_exists() { [[ -n $MANAGER_OF_NAMESPACE ]]; }

# A namespace that this script creates has its label, is in FILE, and is deleted by `kubectl delete -f FILE`. Other namespaces stay.
namespace_is_ours() { ! namespace_exists || [[ $MANAGER_OF_NAMESPACE == 'deploy-gmsa-webhook.sh manages it' ]]; }

# Asks the API server about all rights at once; one line names the missing ones.
check_rights() {
  local review='apiVersion: authorization.k8s.io/v1
kind: SelfSubjectAccessReview
spec: {resourceAttributes: {group: "%s", resource: %s, namespace: "%s", verb: %s}}
---
'
  local namespace=$NAMESPACE
  namespace_exists || namespace=''
  local verbs='get create patch' more verb resource where questions='' answers lacking
  [[ $DRY_RUN != client ]] || verbs='get'
  for resource in .namespaces apiextensions.k8s.io.customresourcedefinitions rbac.authorization.k8s.io.clusterroles \
    rbac.authorization.k8s.io.clusterrolebindings admissionregistration.k8s.io.mutatingwebhookconfigurations \
    admissionregistration.k8s.io.validatingwebhookconfigurations \
    in:.serviceaccounts in:.secrets in:.services in:apps.deployments in:policy.poddisruptionbudgets \
    in:rbac.authorization.k8s.io.roles in:rbac.authorization.k8s.io.rolebindings; do
    where='' more=''
    [[ $resource != in:* ]] || where=$namespace
    resource=${resource#in:}
    # kubectl lists CRDs to check what it applies, and watches the Deployment until it is ready.
    case $resource in
      *.customresourcedefinitions) more='list' ;;
      *.deployments) [[ $DRY_RUN != none ]] || more='list watch' ;;
    esac
    for verb in $verbs $more; do
      # shellcheck disable=SC2059 # the format is the constant above
      questions+=$(printf "$review" "${resource%.*}" "${resource##*.}" "$where" "$verb")$'\n'
    done
  done
  answers=$("$KUBECTL" create --validate=false -f - -o 'jsonpath={.status.allowed} {.spec.resourceAttributes.verb} {.spec.resourceAttributes.resource}{"\n"}' <<<"$questions" 2>&1) \
    || give_up "no rights: $(complaint "$answers")"
  lacking=$(sed -n 's/^false //p' <<<"$answers" | paste -sd, | sed 's/,/, /g' | plain)
  [[ -z $lacking ]] || give_up "no rights to $lacking"
}

# render OBJECTS NAMESPACE [TEMPLATE]: the template's objects; namespaced ones get NAMESPACE. OBJECTS is all, cluster (cluster-scoped objects),
# namespace (the Namespace alone) or namespaced.
# shellcheck disable=SC2016 # ${...} are the template's own placeholders
render() {
  local wanted=$1 namespace=$2 template=${3:-gmsa-webhook.yml.tpl} line document='' when='' scope=cluster tolerations=''
  if $TOLERATE_MASTER; then
    tolerations='tolerations:
        - key: node-role.kubernetes.io/control-plane
          operator: Exists
          effect: NoSchedule
        - key: node-role.kubernetes.io/master
          operator: Exists
          effect: NoSchedule'
  fi
  local mode=self-managed
  [[ -z $CERTS_DIR ]] || mode=secret
  flush() {
    case $when in
      '' | "$mode") ;;
      namespace) namespace_is_ours || document='' ;;
      *) document='' ;;
    esac
    if [[ -n $document && ($wanted == all || $wanted == "$scope" || $wanted == "$when") ]]; then
      printf -- '---\n%s' "$document"
    fi
    document='' when='' scope=cluster
  }
  while IFS= read -r line; do
    case $line in
      ---) flush && continue ;;
      '# when: '*) when=${line#\# when: } && continue ;;
      '##'*) continue ;;
      '  namespace: ${NAMESPACE}') line="  namespace: $namespace" scope=namespaced ;;
      *'${TOLERATIONS}')
        [[ -n $tolerations ]] || continue
        line=${line/'${TOLERATIONS}'/"$tolerations"}
        ;;
    esac
    line=${line//'${NAME}'/"$NAME"}
    line=${line//'${NAMESPACE}'/"$NAMESPACE"}
    line=${line//'${IMAGE}'/"$IMAGE"}
    line=${line//'${ADMIN_USERS}'/"$ADMIN_USERS"}
    line=${line//'${ADMIN_GROUPS}'/"$ADMIN_GROUPS"}
    document+=$line$'\n'
  done <"$SOURCE/$template"
  flush
}

# Makes in the current folder a CA, unless it exists, and a certificate for the names of the Service.
issue() {
  local ec=(-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes) host=$NAME.$NAMESPACE
  { [[ -e ca.key && -e ca.crt ]] || openssl req -x509 "${ec[@]}" -days 3650 -subj "/CN=$NAME-ca" \
    -addext keyUsage=critical,keyCertSign -keyout ca.key -out ca.crt; } \
    && openssl req "${ec[@]}" -subj "/CN=$NAME" -keyout tls.key.new -out tls.csr \
    && openssl x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 365 -out tls.crt.new \
      -extfile <(printf 'subjectAltName=DNS:%s.svc,DNS:%s.svc.cluster.local\nextendedKeyUsage=serverAuth\n' "$host" "$host") \
    && mv tls.key.new tls.key && mv tls.crt.new tls.crt && rm -f tls.csr ca.srl
}

has_certificate() { [[ -n $CERTS_DIR && -e $CERTS_DIR/tls.crt && -e $CERTS_DIR/tls.key && -e $CERTS_DIR/ca.crt ]]; }

# Makes missing files of --certs-dir with openssl: a CA that stays, and a certificate for the names of the Service.
make_certificate() {
  if has_certificate && ! $OVERWRITE; then
    say "using the certificate in $CERTS_DIR"
    return
  fi
  if [[ -e $CERTS_DIR/ca.crt && ! -e $CERTS_DIR/ca.key ]]; then
    give_up "$CERTS_DIR/ca.crt has no ca.key beside it to sign a certificate with: put tls.crt and tls.key there yourself"
  fi
  if [[ $DRY_RUN != none ]]; then
    say "would make a certificate in $CERTS_DIR (dry run)"
    return
  fi
  command -v openssl >/dev/null \
    || give_up "openssl is missing: put tls.crt, tls.key and ca.crt into $CERTS_DIR yourself, or leave --certs-dir out"
  local log
  log=$({ umask 077 && mkdir -p "$CERTS_DIR" && cd "$CERTS_DIR" && issue; } 2>&1) \
    || failed "cannot make a certificate in $CERTS_DIR: $(tail -n 1 <<<"$log")"
  say "made a certificate in $CERTS_DIR; it lasts a year, --overwrite replaces it"
}

# apply_secret NAMESPACE ARGUMENT...: writes the certificate into the cluster. Server-side apply keeps no copy of the key in an
# annotation.
apply_secret() {
  local namespace=$1
  shift
  has_certificate || return 0
  "$KUBECTL" create secret generic "$NAME-cert" --namespace "$namespace" --dry-run=client -o yaml \
    --from-file=ca.crt="$CERTS_DIR/ca.crt" --from-file=tls.crt="$CERTS_DIR/tls.crt" --from-file=tls.key="$CERTS_DIR/tls.key" \
    | "$KUBECTL" apply --server-side --force-conflicts --field-manager=deploy-gmsa-webhook "$@" -f -
}

# `kubectl apply` removes a caBundle that it applied before and that the new file does not have: the API server would no longer trust the old
# pods while the new ones start. Without the record of that apply, the caBundle stays until the webhook replaces it.
keep_ca_bundle() {
  local kind last forgotten
  for kind in mutatingwebhookconfiguration validatingwebhookconfiguration; do
    last=$("$KUBECTL" get "$kind" "$NAME" --ignore-not-found \
      -o 'jsonpath={.metadata.annotations.kubectl\.kubernetes\.io/last-applied-configuration}')
    # shellcheck disable=SC2001 # bash has no regular expressions in ${variable//}
    forgotten=$(sed 's/"caBundle":"[^"]*",//g' <<<"$last")
    [[ $last == "$forgotten" ]] || "$KUBECTL" annotate --overwrite "$kind" "$NAME" \
      "kubectl.kubernetes.io/last-applied-configuration=$forgotten" >/dev/null
  done
}

apply_crd() {
  # Server-side apply: the creator of the CRD may have left no annotation, and the CRD must never be replaced.
  "$KUBECTL" apply --server-side --force-conflicts --field-manager=deploy-gmsa-webhook "$@" -f "$SOURCE/gmsa-crd.yaml"
}

dry_run_client() {
  say "would run (client dry run):"
  say "  $KUBECTL apply --server-side -f $SOURCE/gmsa-crd.yaml"
  "$KUBECTL" apply --dry-run=client -f "$SOURCE/gmsa-crd.yaml"
  [[ -z $CERTS_DIR ]] || say "  $KUBECTL create secret generic $NAME-cert --namespace $NAMESPACE (from $CERTS_DIR)"
  say "  $KUBECTL apply -f $FILE"
  "$KUBECTL" apply --dry-run=client -f "$FILE"
}

dry_run_server() {
  local elsewhere=default
  apply_crd --dry-run=server
  if namespace_exists; then
    apply_secret "$NAMESPACE" --dry-run=server
    "$KUBECTL" apply --dry-run=server -f "$FILE"
    if command -v diff >/dev/null; then
      # Exit code 1 means that something differs.
      "$KUBECTL" diff -f "$FILE" || [[ $? -eq 1 ]]
    fi
    return
  fi
  render cluster "$NAMESPACE" | "$KUBECTL" apply --dry-run=server -f -
  say "the namespace $NAMESPACE does not exist yet, so the API server checks the objects in it as if they were in $elsewhere:"
  apply_secret "$elsewhere" --dry-run=server
  render namespaced "$elsewhere" | "$KUBECTL" apply --dry-run=server -f -
}

wait_until_ready() {
  "$KUBECTL" --namespace "$NAMESPACE" rollout status "deployment/$NAME" --timeout="${TIMEOUT}s" && return
  failed "the webhook is not ready after $TIMEOUT seconds: see $KUBECTL -n $NAMESPACE get pods -l app=$NAME, and their logs"
}

# Objects that the Go webhook's script left, and that nothing uses any more.
tell_leftovers() {
  local object left=''
  for object in "clusterrolebinding/$NAMESPACE-$NAME-binding-to-$NAMESPACE-$NAME-rbac-role" \
    "clusterrole/$NAMESPACE-$NAME-rbac-role" "certificatesigningrequest/$NAME.$NAMESPACE"; do
    left+=$("$KUBECTL" get "$object" --ignore-not-found -o "jsonpath= $object" 2>/dev/null || true)
  done
  local secret
  secret=$("$KUBECTL" --namespace "$NAMESPACE" get secret "$NAME" --ignore-not-found -o 'jsonpath={.data.tls_private_key}' 2>/dev/null || true)
  if [[ -n $left || -n $secret ]]; then
    say "The Go webhook left objects that nothing uses any more. To remove them:"
    [[ -z $left ]] || say "  $KUBECTL delete$left"
    [[ -z $secret ]] || say "  $KUBECTL --namespace $NAMESPACE delete secret/$NAME"
  fi
}

main() {
  [[ ${BASH_VERSINFO[0]} -ge 4 ]] || give_up "bash 4 or later is needed, this is $BASH_VERSION"
  parse "$@"
  check_options
  check_cluster
  check_rights
  if $OVERWRITE && [[ -z $CERTS_DIR ]]; then
    say 'note: --overwrite has nothing to do without --certs-dir: the webhook renews its own certificate'
  fi

  { render all "$NAMESPACE" >"$FILE"; } 2>/dev/null || give_up "--file $FILE cannot be written"
  say "wrote $FILE"
  if [[ -n $STATIC_POLICIES ]]; then
    { render all "$NAMESPACE" gmsa-static-policies.yml.tpl >"$STATIC_POLICIES"; } 2>/dev/null \
      || give_up "--static-policies $STATIC_POLICIES cannot be written"
    say "wrote $STATIC_POLICIES, for the disk of each API server"
  fi
  [[ -z $CERTS_DIR ]] || make_certificate
  if [[ $DRY_RUN != none ]]; then
    "dry_run_$DRY_RUN"
    say "nothing was changed ($DRY_RUN dry run)"
    return
  fi

  apply_crd
  "$KUBECTL" wait --for=condition=Established --timeout=60s "crd/$CRD" >/dev/null
  if namespace_is_ours; then
    render namespace "$NAMESPACE" | "$KUBECTL" apply -f - >/dev/null
  fi
  [[ -z $CERTS_DIR ]] || apply_secret "$NAMESPACE"
  keep_ca_bundle
  "$KUBECTL" apply -f "$FILE"
  wait_until_ready

  tell_leftovers
  say "The GMSA webhook is ready. To remove it, and keep the credential specs:"
  say "  $KUBECTL delete -f $FILE"
  [[ -z $CERTS_DIR ]] || namespace_is_ours || say "  $KUBECTL --namespace $NAMESPACE delete secret/$NAME-cert"
}

main "$@"
