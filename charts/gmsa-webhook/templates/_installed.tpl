{{/*
Objects that are installed in the cluster. Upgrades keep some of their fields, and "gmsa-webhook.checkSource" refuses some changes; nothing else may depend on them. Without a cluster
(`helm template`, Argo CD) nothing is found.
*/}}

{{/* "true" where Helm renders for a cluster that it can read: every cluster has this namespace. */}}
{{- define "gmsa-webhook.hasCluster" -}}
{{- if lookup "v1" "Namespace" "" "kube-system" }}true{{ end -}}
{{- end -}}

{{/* The phase of the namespace NAME: Active or Terminating; empty where it does not exist. */}}
{{- define "gmsa-webhook.installedNamespace" -}}
{{- with lookup "v1" "Namespace" "" . }}{{ .status.phase }}{{ end -}}
{{- end -}}

{{/* The Deployment, as YAML. */}}
{{- define "gmsa-webhook.installed" -}}
{{- with lookup "apps/v1" "Deployment" (include "gmsa-webhook.namespace" .) (include "gmsa-webhook.fullname" .) }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{/*
The source of the installed webhook's certificate, as YAML: "source" (self-managed; published: the webhook publishes the CA of a Secret; injected: cert-manager
writes the caBundle; values: the caBundle is in the values), its "caBundle", the mounted "secret", and "settled" where no old pod is left. Empty where this is not known.
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

{{/* The number of items of the list "of" that are in the list "in". */}}
{{- define "gmsa-webhook.common" -}}
{{- $in := .in -}}
{{- $found := list -}}
{{- range .of }}{{ if has . $in }}{{ $found = append $found . }}{{ end }}{{ end -}}
{{ len $found }}
{{- end -}}

{{/* The data of the Secret of mode secret, as YAML; empty where the Secret does not exist yet. */}}
{{- define "gmsa-webhook.storedCertificate" -}}
{{- if eq (include "gmsa-webhook.mode" .) "secret" -}}
{{- with (lookup "v1" "Secret" (include "gmsa-webhook.namespace" .) (include "gmsa-webhook.certificateSecret" .)).data }}{{ toYaml . }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* The issuer of the installed Certificate in mode cert-manager, in the form of "gmsa-webhook.issuer". Missing fields get cert-manager's defaults. */}}
{{- define "gmsa-webhook.installedIssuer" -}}
{{- with lookup "cert-manager.io/v1" "Certificate" (include "gmsa-webhook.namespace" .) (include "gmsa-webhook.fullname" .) }}{{ merge .spec.issuerRef (dict "group" "cert-manager.io" "kind" "Issuer") | toYaml }}{{ end -}}
{{- end -}}

{{/*
The "name" of the objects of this release, the "namespace" that the API server calls, and the service "account" of the pods there, as YAML; empty where they do not exist. Where no object
has the name of the values, the name comes from a webhook configuration of this chart and release.
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
