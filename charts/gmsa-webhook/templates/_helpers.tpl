{{/*
Values in their final form, names, metadata and the image, for several templates.
Every template starts with "gmsa-webhook.init"; nothing reads .Values before it.
*/}}

{{/* Completes .Values, then checks them. This happens once: all templates share .Values. */}}
{{- define "gmsa-webhook.init" -}}
{{- if not (hasKey .Values "complete") -}}
{{- include "gmsa-webhook.complete" (dict "values" .Values "defaults" (.Files.Get "files/values.yaml" | fromYaml)) -}}
{{- include "gmsa-webhook.check" . -}}
{{- $_ := set .Values "complete" true -}}
{{- end -}}
{{- end -}}

{{/*
Sets keys of "values" that are missing or blank to their defaults, at every level, and removes blank keys without a default. Helm removes a default
where a values file has the key with nothing behind it, and --reuse-values brings the defaults of the old chart.
*/}}
{{- define "gmsa-webhook.complete" -}}
{{- $values := .values -}}
{{- $defaults := .defaults -}}
{{- range $key, $default := $defaults -}}
{{- if kindIs "invalid" (index $values $key) -}}
{{- $_ := set $values $key $default -}}
{{- end -}}
{{- end -}}
{{- range $key := keys $values -}}
{{- $value := index $values $key -}}
{{- if and (kindIs "invalid" $value) (not (hasKey $defaults $key)) -}}
{{- $_ := unset $values $key -}}
{{- else if kindIs "map" $value -}}
{{- $default := index $defaults $key -}}
{{- include "gmsa-webhook.complete" (dict "values" $value "defaults" (kindIs "map" $default | ternary $default dict)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The name of all objects. At most 53 characters, the limit of a release's name, so that longer names made from it are still valid. */}}
{{- define "gmsa-webhook.fullname" -}}
{{- $name := .Values.fullnameOverride -}}
{{- if not $name -}}
{{- $suffix := .Values.nameOverride | default (ternary "" .Chart.Name .Chart.IsRoot) -}}
{{- $name = list .Release.Name $suffix | compact | join "-" -}}
{{- end -}}
{{- if gt (len $name) 53 -}}
{{ $name | trunc 44 | trimSuffix "-" }}-{{ $name | sha256sum | trunc 8 }}
{{- else -}}
{{ $name }}
{{- end -}}
{{- end -}}

{{- define "gmsa-webhook.namespace" -}}
{{ .Values.namespaceOverride | default .Release.Namespace }}
{{- end -}}

{{/* The label that selects the pods. It must never change: the selector of a Deployment cannot. */}}
{{- define "gmsa-webhook.selector" -}}
app: {{ include "gmsa-webhook.fullname" . | toYaml }}
{{- end -}}

{{/* The labels by which monitors find the Services of the release. Two copies of this chart in one parent differ by their alias, which is the chart's name. */}}
{{- define "gmsa-webhook.identity" -}}
app.kubernetes.io/name: {{ .Values.nameOverride | default .Chart.Name | toYaml }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "gmsa-webhook.labels" -}}
{{ include "gmsa-webhook.identity" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/*
The metadata of an object. Takes a dict: "root" CONTEXT, and where needed "name" (default: the name of all objects), "cluster" true (a cluster-scoped object),
"namespace" (another namespace), "labels" and "annotations". The chart's own labels and annotations win over commonLabels and commonAnnotations.
*/}}
{{- define "gmsa-webhook.metadata" -}}
{{- $root := .root -}}
{{- $labels := merge (include "gmsa-webhook.labels" $root | fromYaml) (.labels | default dict) $root.Values.commonLabels -}}
{{- $annotations := merge dict (.annotations | default dict) $root.Values.commonAnnotations -}}
name: {{ .name | default (include "gmsa-webhook.fullname" $root) | toYaml }}
{{- if not .cluster }}
namespace: {{ .namespace | default (include "gmsa-webhook.namespace" $root) | toYaml }}
{{- end }}
labels:
  {{- toYaml $labels | nindent 2 }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "gmsa-webhook.serviceAccount" -}}
{{- with .Values.serviceAccount -}}
{{ .name | default (ternary (include "gmsa-webhook.fullname" $) "default" .create) }}
{{- end -}}
{{- end -}}

{{/* Where the certificate comes from: self-managed, cert-manager or secret. */}}
{{- define "gmsa-webhook.mode" -}}
{{- $enabled := .Values.certificates.certManager.enabled -}}
{{- if .Values.certificates.mode -}}
{{ .Values.certificates.mode }}
{{- else if kindIs "invalid" $enabled -}}
self-managed
{{- else -}}
{{ ternary "cert-manager" "secret" $enabled }}
{{- end -}}
{{- end -}}

{{/* "true" where the webhook writes the CA into the webhook configurations. */}}
{{- define "gmsa-webhook.publishesCa" -}}
{{- $mode := include "gmsa-webhook.mode" . -}}
{{- $injected := and (eq $mode "cert-manager") .Values.certificates.certManager.injectCa -}}
{{- if not (or $injected (and (eq $mode "secret") .Values.certificates.caBundle)) }}true{{ end -}}
{{- end -}}

{{/* The caBundle of the webhook configurations, where the values hold it: base64 of PEM. */}}
{{- define "gmsa-webhook.caBundle" -}}
{{- $ours := and (eq (include "gmsa-webhook.mode" .) "secret") .Values.certificates.caBundle -}}
{{- with $ours | default .Values.certificates.formerCaBundle -}}
{{- $bundle := trim . -}}
{{- if hasPrefix "-----BEGIN" $bundle }}{{ b64enc $bundle }}{{ else }}{{ regexReplaceAll "\\s" $bundle "" }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* The second mutating configuration: mutating configurations are called in the order of their names. */}}
{{- define "gmsa-webhook.lastName" -}}
zz-{{ include "gmsa-webhook.fullname" . }}
{{- end -}}

{{/* "true" where the API server evaluates match conditions: they are on by default from 1.28 on. */}}
{{- define "gmsa-webhook.hasMatchConditions" -}}
{{- if semverCompare ">=1.28-0" .Capabilities.KubeVersion.Version }}true{{ end -}}
{{- end -}}

{{/* "true" where the API server serves v1 of ValidatingAdmissionPolicy, which the guard is. */}}
{{- define "gmsa-webhook.hasGuard" -}}
{{- if semverCompare ">=1.30-0" .Capabilities.KubeVersion.Version }}true{{ end -}}
{{- end -}}

{{/* The Secret with the certificate, in the modes cert-manager and secret. */}}
{{- define "gmsa-webhook.certificateSecret" -}}
{{- $own := printf "%s-cert" (include "gmsa-webhook.fullname" .) -}}
{{ .Values.certificates.secretName | default (ternary $own "gmsa-server-cert" (eq (include "gmsa-webhook.mode" .) "cert-manager")) }}
{{- end -}}

{{/* The issuer of the serving certificate in mode cert-manager: issuerRef of the values, or the chart's own Issuer. */}}
{{- define "gmsa-webhook.issuer" -}}
{{- $own := dict "group" "cert-manager.io" "kind" "Issuer" "name" (include "gmsa-webhook.fullname" .) -}}
{{ merge dict .Values.certificates.certManager.issuerRef $own | toYaml }}
{{- end -}}

{{/* The Secret of mode self-managed. */}}
{{- define "gmsa-webhook.ownSecret" -}}
{{ include "gmsa-webhook.fullname" . }}-tls
{{- end -}}

{{/* "true" where the first mutating configuration is there: without match conditions it is the only one. */}}
{{- define "gmsa-webhook.hasFirst" -}}
{{- if or .Values.webhooks.first.enabled (not (include "gmsa-webhook.hasMatchConditions" .)) }}true{{ end -}}
{{- end -}}

{{/* "true" where the second one is there: it needs match conditions. */}}
{{- define "gmsa-webhook.hasLast" -}}
{{- if and .Values.webhooks.last.enabled (include "gmsa-webhook.hasMatchConditions" .) }}true{{ end -}}
{{- end -}}

{{/* The name of the chart's own credential spec: the account's name, changed to a valid object name. */}}
{{- define "gmsa-webhook.credentialSpec" -}}
{{ lower .Values.credential.domainJoinConfig.machineAccountName | replace "_" "-" }}
{{- end -}}

{{/* "true" where the webhook looks up a name: the collector of traces has a host name, not an address. */}}
{{- define "gmsa-webhook.looksUpNames" -}}
{{- range .Values.extraEnv -}}
{{- if and (hasPrefix "OTEL_EXPORTER_OTLP_" .name) (hasSuffix "ENDPOINT" .name) -}}
{{- $host := regexReplaceAll "^[a-z]+://" (.value | default "name") "" -}}
{{- if not (regexMatch "^([0-9.]+|\\[[0-9A-Fa-f:.]+\\])(:|/|$)" $host) }}true{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
