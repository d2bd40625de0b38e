{{/*
What is installed in the cluster: for what an upgrade must keep, and for changes that "gmsa-webhook.checkSource" must refuse; never for what is rendered again. Nothing is found where
Helm renders without a cluster (`helm template`, Argo CD).
*/}}

{{/* "true" where Helm renders for a cluster that it can read: every cluster has this namespace. */}}
{{- define "gmsa-webhook.hasCluster" -}}
{{- if lookup "v1" "Namespace" "" "kube-system" }}true{{ end -}}
{{- end -}}

{{/* Of a namespace's name: its phase, Active or Terminating; empty where there is none. */}}
{{- define "gmsa-webhook.installedNamespace" -}}
{{- with lookup "v1" "Namespace" "" . }}{{ .status.phase }}{{ end -}}
{{- end -}}

{{/* The Deployment, as YAML. */}}
{{- define "gmsa-webhook.installed" -}}
{{- with lookup "apps/v1" "Deployment" (include "gmsa-webhook.namespace" .) (include "gmsa-webhook.fullname" .) }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{/*
Where the installed webhook has its certificate from, as YAML: "source" (self-managed, published: the webhook publishes the CA of a Secret, injected: cert-manager
writes the caBundle, values: the caBundle is the values'), its "caBundle", the "secret" that is mounted, and "settled" where no pod of before is left. Empty where that cannot be told.
*/}}
{{- define "gmsa-webhook.installedSource" -}}
{{- $deployment := include "gmsa-webhook.installed" . | fromYaml -}}
{{- $pod := dig "spec" "template" "spec" dict $deployment -}}
{{- $args := list -}}
{{- range $pod.containers }}{{ $args = concat $args (.args | default list) }}{{ end -}}
{{- $source := "" -}}
{{- $bundle := "" -}}
{{- if regexMatch "--self-managed-secret" (join " " $args) -}}
{{- $source = "self-managed" -}}
{{- else if regexMatch "--publish-ca" (join " " $args) -}}
{{- $source = "published" -}}
{{- else if $deployment -}}
{{- with lookup "admissionregistration.k8s.io/v1" "ValidatingWebhookConfiguration" "" (include "gmsa-webhook.fullname" .) -}}
{{- if hasKey (.metadata.annotations | default dict) "cert-manager.io/inject-ca-from" -}}
{{- $source = "injected" -}}
{{- else -}}
{{- $bundle = .webhooks | default list | first | default dict | dig "clientConfig" "caBundle" "" -}}
{{- $source = ternary "values" "" (ne $bundle "") -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $source -}}
{{- $status := $deployment.status | default dict -}}
{{- $secret := "" -}}
{{- range $pod.volumes }}{{ if eq .name "tls" }}{{ $secret = dig "secret" "secretName" "" . }}{{ end }}{{ end -}}
{{- $settled := and (eq (int $status.observedGeneration) (int $deployment.metadata.generation)) (eq (int $status.replicas) (int $status.updatedReplicas)) -}}
{{ dict "source" $source "caBundle" $bundle "secret" $secret "settled" $settled | toYaml }}
{{- end -}}
{{- end -}}

{{/* The certificates of a PEM text in base64, as a JSON list that can be compared. */}}
{{- define "gmsa-webhook.authorities" -}}
{{- $found := list -}}
{{- range regexFindAll "-----BEGIN CERTIFICATE-----[^-]+" (b64dec .) -1 -}}
{{- $found = append $found (regexReplaceAll "-----BEGIN CERTIFICATE-----|\\s" . "") -}}
{{- end -}}
{{ toJson $found }}
{{- end -}}

{{/* How many of the list "of" are in the list "in". */}}
{{- define "gmsa-webhook.common" -}}
{{- $in := .in -}}
{{- $found := list -}}
{{- range .of }}{{ if has . $in }}{{ $found = append $found . }}{{ end }}{{ end -}}
{{ len $found }}
{{- end -}}

{{/* What the Secret of mode secret holds, as YAML: nothing where it is not there yet. */}}
{{- define "gmsa-webhook.storedCertificate" -}}
{{- if eq (include "gmsa-webhook.mode" .) "secret" -}}
{{- with (lookup "v1" "Secret" (include "gmsa-webhook.namespace" .) (include "gmsa-webhook.certificateSecret" .)).data }}{{ toYaml . }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* The issuer of the installed certificate in mode cert-manager, as "gmsa-webhook.issuer" has it: what is not set is cert-manager's default. */}}
{{- define "gmsa-webhook.installedIssuer" -}}
{{- with lookup "cert-manager.io/v1" "Certificate" (include "gmsa-webhook.namespace" .) (include "gmsa-webhook.fullname" .) }}{{ merge .spec.issuerRef (dict "group" "cert-manager.io" "kind" "Issuer") | toYaml }}{{ end -}}
{{- end -}}

{{/*
The "name" of the objects of this release, the "namespace" that the API server calls, and the service "account" of the pods there, as YAML; empty where there are none. Where nothing
has the name of the values, it is looked for among all configurations: those of this chart, of this release.
*/}}
{{- define "gmsa-webhook.installedIdentity" -}}
{{- $configuration := lookup "admissionregistration.k8s.io/v1" "ValidatingWebhookConfiguration" "" (include "gmsa-webhook.fullname" .) -}}
{{- $namespace := $configuration.webhooks | default list | first | default dict | dig "clientConfig" "service" "namespace" "" -}}
{{- $deployment := include "gmsa-webhook.installed" . | fromYaml -}}
{{- $account := ternary (dig "spec" "template" "spec" "serviceAccountName" "default" $deployment) "" (hasKey $deployment "spec") -}}
{{- $name := "" -}}
{{- if not (or $configuration $deployment) -}}
{{- range (lookup "admissionregistration.k8s.io/v1" "ValidatingWebhookConfiguration" "" "").items -}}
{{- $annotations := .metadata.annotations | default dict -}}
{{- $isOfRelease := and (eq (get $annotations "meta.helm.sh/release-name") $.Release.Name) (eq (get $annotations "meta.helm.sh/release-namespace") $.Release.Namespace) -}}
{{- if and $isOfRelease (regexMatch (printf "^%s-[0-9]" $.Chart.Name) (dig "metadata" "labels" "helm.sh/chart" "" .)) }}{{ $name = .metadata.name }}{{ end -}}
{{- end -}}
{{- end -}}
{{ dict "name" $name "namespace" $namespace "account" $account | toYaml }}
{{- end -}}
