{{/*
The entries in their final form, and the checks that the schema cannot make. Every message begins with `values: ENTRY` and names the way out.
*/}}

{{/* The entries with all their keys, as a JSON list. */}}
{{- define "gmsa-accounts.entries" -}}
{{- include "gmsa-accounts.checkNames" . -}}
{{- $plugins := dict "azure" "{CCC2A336-D7F3-4818-A213-272B7924213E}" "aws" "{859E1386-BDB4-49E8-85C7-3070B13920E1}" "rancher" "{e4781092-f116-4b79-b55e-28eb6a224e26}" -}}
{{- $entries := list -}}
{{- range $index, $given := .Values.accounts -}}
{{- $entry := dict "path" (printf "accounts[%d]" $index) "account" $given.account "grants" ($given.grants | default list) "additional" ($given.additionalAccounts | default list) -}}
{{- $_ := set $entry "name" ($given.name | default (lower $given.account | replace "_" "-")) -}}
{{- $_ := set $entry "plugin" (get $plugins ($given.plugin | default "" | lower) | default $given.plugin | default "") -}}
{{- $_ := set $entry "pluginInput" ($given.pluginInput | default "") -}}
{{- $entries = append $entries $entry -}}
{{- end -}}
{{- include "gmsa-accounts.check" (dict "root" . "entries" $entries) -}}
{{- include "gmsa-accounts.checkCluster" (dict "root" . "entries" $entries) -}}
{{ toJson $entries }}
{{- end -}}

{{- define "gmsa-accounts.check" -}}
{{- $domain := .root.Values.domain | default dict -}}
{{- if .entries -}}
{{- $dnsDomain := "^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$" -}}
{{- range $form := list
  (list "dnsName" $dnsDomain "a domain's DNS name, such as corp.example.com")
  (list "netBiosName" "^[^\\\\/:*?\"<>|\\s]{1,15}$" "a domain's NetBIOS name, such as CORP")
  (list "guid" "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$" "a GUID without braces")
  (list "sid" "^S-1-5-21(-[0-9]{1,10}){3}$" "a domain's SID: S-1-5-21 and three numbers (an account's has four)")
  (list "dnsTreeName" (printf "(%s)|^$" $dnsDomain) "a domain's DNS name, such as example.com")
-}}
{{- $value := get $domain (index $form 0) | default "" | toString -}}
{{- if not (regexMatch (index $form 1) $value) -}}
{{- fail (printf "values: domain.%s %q is not %s" (index $form 0) $value (index $form 2)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $labels := .root.Values.commonLabels | default dict -}}
{{- range $name, $map := dict "commonLabels" $labels "commonAnnotations" (.root.Values.commonAnnotations | default dict) -}}
{{- range $key, $value := $map -}}
{{- if not (regexMatch "^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$" $key) -}}
{{- fail (printf "values: %s: the key %q is not one that Kubernetes takes, such as example.com/team: what is before the slash is in lower case" $name $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $key, $value := $labels -}}
{{- if not (regexMatch "^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$" $value) -}}
{{- fail (printf "values: commonLabels.%s %q is not a label's value: at most 63 letters, digits and . _ -, with a letter or digit at both ends" $key $value) -}}
{{- end -}}
{{- end -}}
{{- $names := dict -}}
{{- $bindings := dict -}}
{{- range $entry := .entries -}}
{{- range $account := prepend $entry.additional $entry.account -}}
{{- if not (regexMatch "^[A-Za-z0-9]([A-Za-z0-9._-]{0,13}[A-Za-z0-9])?$" $account) -}}
{{- fail (printf "values: %s: account %q is not a SAM name: at most 15 letters, digits and . _ -, without the trailing $ and without a domain" $entry.path $account) -}}
{{- end -}}
{{- end -}}
{{- if not (regexMatch "^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$" $entry.name) -}}
{{- fail (printf "values: %s: name %q is not a lower-case DNS name" $entry.path $entry.name) -}}
{{- end -}}
{{- if gt (len $entry.name) 244 -}}
{{- fail (printf "values: %s: name is longer than 244 characters, and that of its ClusterRole would be longer than 253" $entry.path) -}}
{{- end -}}
{{- with get $names $entry.name -}}
{{- fail (printf "values: %s and %s have the same name %q: give one of them a name" . $entry.path $entry.name) -}}
{{- end -}}
{{- $_ := set $names $entry.name $entry.path -}}
{{- if and $entry.plugin (not (regexMatch "^\\{[^{}\\s]+\\}$" $entry.plugin)) -}}
{{- fail (printf "values: %s: plugin %q is none: azure, aws, rancher, or a GUID in braces" $entry.path $entry.plugin) -}}
{{- end -}}
{{- if ne (empty $entry.plugin) (empty $entry.pluginInput) -}}
{{- fail (printf "values: %s: plugin and pluginInput go together, and only one of them is set" $entry.path) -}}
{{- end -}}
{{- range $grant := $entry.grants -}}
{{- if not (regexMatch "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?:[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$" $grant) -}}
{{- fail (printf "values: %s: grant %q is not NAMESPACE:SERVICE-ACCOUNT" $entry.path $grant) -}}
{{- end -}}
{{- $binding := printf "%s/%s" (index (splitList ":" $grant) 0) (include "gmsa-accounts.binding" (dict "name" $entry.name "grant" $grant)) -}}
{{- with get $bindings $binding -}}
{{- fail (printf "values: %s and %s make the same RoleBinding %s: remove one grant, or give one entry another name" . $entry.path $binding) -}}
{{- end -}}
{{- $_ := set $bindings $binding $entry.path -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Checks against the cluster; `helm template` and Argo CD render without one. A change that would end an upgrade in the middle, or have pods refused, is
refused with its entry before anything is changed.
*/}}
{{- define "gmsa-accounts.checkCluster" -}}
{{- $release := .root.Release -}}
{{- $isCluster := lookup "v1" "Namespace" "" $release.Namespace | empty | not -}}
{{- $missing := list -}}
{{- range $entry := .entries -}}
{{- range $grant := $entry.grants -}}
{{- $namespace := index (splitList ":" $grant) 0 -}}
{{- with lookup "v1" "Namespace" "" $namespace -}}
{{- $isCluster = true -}}
{{- if .metadata.deletionTimestamp -}}
{{- fail (printf "values: %s: grant %q: the namespace %s is being deleted: remove the grant, or wait until the namespace is gone and create it again" $entry.path $grant $namespace) -}}
{{- end -}}
{{- else -}}
{{- $missing = append $missing (list $entry.path $grant $namespace) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $isCluster | ternary $missing list -}}
{{- fail (printf "values: %s: grant %q: there is no namespace %s: create it, or remove the grant" (index . 0) (index . 1) (index . 2)) -}}
{{- end -}}
{{- if and $isCluster (.root.Capabilities.APIVersions.Has "windows.k8s.io/v1") -}}
{{- $names := dict -}}
{{- range .entries }}{{ $_ := set $names .name true }}{{ end -}}
{{- range $entry := .entries -}}
{{- $stored := lookup "windows.k8s.io/v1" "GMSACredentialSpec" "" $entry.name -}}
{{- $owner := include "gmsa-accounts.owner" $stored -}}
{{- if and $owner (ne $owner (printf "%s in namespace %s" $release.Name $release.Namespace)) -}}
{{- fail (printf "values: %s: the credential spec %q is of the release %s: remove the entry here or there, or give this one another name; to move it here, see README.md, \"Move an entry\"" $entry.path $entry.name $owner) -}}
{{- end -}}
{{- if and $release.IsUpgrade (not $stored) -}}
{{- range (lookup "windows.k8s.io/v1" "GMSACredentialSpec" "" "").items -}}
{{- $isOurs := eq (include "gmsa-accounts.owner" .) (printf "%s in namespace %s" $release.Name $release.Namespace) -}}
{{- if and $isOurs (not (hasKey $names .metadata.name)) (eq (dig "credspec" "DomainJoinConfig" "MachineAccountName" "" . | lower) (lower $entry.account)) -}}
{{- fail (printf "values: %s: the name of account %s changes from %q to %q, so pods that name %q would be refused at once: keep an entry with name: %s and its grants beside this one until no workload names it, or delete the credential spec %s if none does" $entry.path $entry.account .metadata.name $entry.name .metadata.name .metadata.name .metadata.name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The release that owns an object, and its namespace; empty where no release does. */}}
{{- define "gmsa-accounts.owner" -}}
{{- $annotations := dig "metadata" "annotations" dict . -}}
{{- with get $annotations "meta.helm.sh/release-name" }}{{ . }} in namespace {{ get $annotations "meta.helm.sh/release-namespace" }}{{ end -}}
{{- end -}}

{{/* The same names as `kubectl gmsa grant` uses, so that each recognizes the grants of the other. */}}
{{- define "gmsa-accounts.role" -}}
gmsa-use-{{ . }}
{{- end -}}

{{/* Takes a dict: "name" NAME "grant" NAMESPACE:SERVICE-ACCOUNT. */}}
{{- define "gmsa-accounts.binding" -}}
gmsa-use-{{ .name }}-{{ index (splitList ":" .grant) 1 }}
{{- end -}}

{{/* The metadata of an object. Takes a dict: "root" CONTEXT "name" NAME, and where needed "namespace" NAME and "keep" true. */}}
{{- define "gmsa-accounts.metadata" -}}
{{- $root := .root -}}
{{- $own := dict
  "app.kubernetes.io/name" $root.Chart.Name
  "app.kubernetes.io/instance" $root.Release.Name
  "app.kubernetes.io/managed-by" $root.Release.Service
  "helm.sh/chart" (printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_")
-}}
name: {{ .name | toYaml }}
{{- with .namespace }}
namespace: {{ . | toYaml }}
{{- end }}
labels:
  {{- merge $own ($root.Values.commonLabels | default dict) | toYaml | nindent 2 }}
{{- $keep := dict "helm.sh/resource-policy" "keep" "argocd.argoproj.io/sync-options" "Delete=false,Prune=false" -}}
{{- with merge (ternary $keep dict (.keep | default false)) ($root.Values.commonAnnotations | default dict) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
