{{/*
What several templates need: the values in their final form, names, labels, the image.
Every template starts with "gmsa-webhook.init"; nothing reads .Values before it.
*/}}

{{/* Completes .Values where they are not this chart's (`--reuse-values` brings the defaults of the chart before), then checks them. */}}
{{- define "gmsa-webhook.init" -}}
{{- if ne (toString .Values.defaultsOf) .Chart.Version -}}
{{- include "gmsa-webhook.complete" (dict "values" .Values "defaults" (.Files.Get "files/values.yaml" | fromYaml)) -}}
{{- end -}}
{{- include "gmsa-webhook.check" . -}}
{{- end -}}

{{/* Adds the keys of "defaults" that "values" lacks, at every level. Sprig's merge takes a false for a missing value. */}}
{{- define "gmsa-webhook.complete" -}}
{{- $values := .values -}}
{{- range $key, $default := .defaults -}}
{{- if not (hasKey $values $key) -}}
{{- $_ := set $values $key $default -}}
{{- else if and (kindIs "map" $default) (kindIs "map" (get $values $key)) -}}
{{- include "gmsa-webhook.complete" (dict "values" (get $values $key) "defaults" $default) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The label that selects the pods; a Deployment's selector never changes, so neither may this. */}}
{{- define "gmsa-webhook.selector" -}}
app: {{ .Release.Name }}
{{- end -}}

{{- define "gmsa-webhook.labels" -}}
app.kubernetes.io/name: gmsa-webhook
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "gmsa-webhook.image" -}}
{{- with .Values.global.systemDefaultRegistry }}{{ trimSuffix "/" . }}/{{ end }}{{ .Values.image.repository -}}
{{- if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end -}}
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

{{/* "true" where the webhook itself writes the CA into the webhook configurations. */}}
{{- define "gmsa-webhook.publishesCa" -}}
{{- $mode := include "gmsa-webhook.mode" . -}}
{{- if or (eq $mode "self-managed") (and (eq $mode "secret") (not .Values.certificates.caBundle)) }}true{{ end -}}
{{- end -}}

{{/* The caBundle of the webhook configurations, where it is the chart that knows it: base64 of PEM. */}}
{{- define "gmsa-webhook.caBundle" -}}
{{- if and (eq (include "gmsa-webhook.mode" .) "secret") .Values.certificates.caBundle -}}
{{- $bundle := trim .Values.certificates.caBundle -}}
{{- if hasPrefix "-----BEGIN" $bundle }}{{ b64enc $bundle }}{{ else }}{{ regexReplaceAll "\\s" $bundle "" }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* The second mutating configuration: mutating configurations are called in the order of their names. */}}
{{- define "gmsa-webhook.last" -}}
zz-{{ .Release.Name }}
{{- end -}}

{{/* "true" where the API server evaluates match conditions (since 1.30). */}}
{{- define "gmsa-webhook.hasMatchConditions" -}}
{{- if semverCompare ">=1.30-0" .Capabilities.KubeVersion.Version }}true{{ end -}}
{{- end -}}

{{- define "gmsa-webhook.hasLast" -}}
{{- if and .Values.webhooks.last.enabled (include "gmsa-webhook.hasMatchConditions" .) }}true{{ end -}}
{{- end -}}

{{/* The name of the chart's own credential spec: that of the account, as far as a name may be so. */}}
{{- define "gmsa-webhook.credentialSpec" -}}
{{ lower .Values.credential.domainJoinConfig.machineAccountName | replace "_" "-" }}
{{- end -}}
