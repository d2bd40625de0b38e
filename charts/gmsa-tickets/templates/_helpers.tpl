{{/*
What several templates need: names, metadata, the broker's configuration. Every template starts with "gmsa-tickets.check".
*/}}

{{- define "gmsa-tickets.fullname" -}}
{{ .Values.fullnameOverride | default .Release.Name }}
{{- end -}}

{{/* The label that selects the pods; a Deployment's selector never changes, so neither may this. */}}
{{- define "gmsa-tickets.selector" -}}
app: {{ include "gmsa-tickets.fullname" . | toYaml }}
{{- end -}}

{{- define "gmsa-tickets.identity" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{/*
The metadata of an object, of dict "root" CONTEXT, and where needed "name" (else that of all objects), "cluster" true (for an object in no namespace), "labels" and
"annotations". The chart's own win over commonLabels and commonAnnotations.
*/}}
{{- define "gmsa-tickets.metadata" -}}
{{- $root := .root -}}
{{- $own := include "gmsa-tickets.identity" $root | fromYaml -}}
{{- $_ := set $own "app.kubernetes.io/version" $root.Chart.AppVersion -}}
{{- $_ := set $own "app.kubernetes.io/managed-by" $root.Release.Service -}}
{{- $_ := set $own "helm.sh/chart" (printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_") -}}
name: {{ .name | default (include "gmsa-tickets.fullname" $root) | toYaml }}
{{- if not .cluster }}
namespace: {{ $root.Release.Namespace | toYaml }}
{{- end }}
labels:
  {{- merge $own (.labels | default dict) $root.Values.commonLabels | toYaml | nindent 2 }}
{{- with merge dict (.annotations | default dict) $root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The matchers of the release's own pods. */}}
{{- define "gmsa-tickets.ownPods" -}}
{{ printf "namespace=%q,pod=~%q" .Release.Namespace (printf "%s-[a-z0-9]+(-[a-z0-9]+)?" (include "gmsa-tickets.fullname" .)) }}
{{- end -}}

{{/* The Secret with the serving certificate. */}}
{{- define "gmsa-tickets.certificateSecret" -}}
{{ .Values.certificates.secretName | default (printf "%s-tls" (include "gmsa-tickets.fullname" .)) }}
{{- end -}}

{{/* What the broker reads as its configuration: where passwords and CAs are, never a password. */}}
{{- define "gmsa-tickets.configuration" -}}
{{- $domains := list -}}
{{- range $index, $given := .Values.domains -}}
{{- $domain := dict "name" $given.name "user" $given.user "passwordFile" ($given.passwordFile | default (printf "/passwords/%d/password" $index)) -}}
{{- with $given.controllers }}{{ $_ := set $domain "controllers" . }}{{ end -}}
{{- with $given.accounts }}{{ $_ := set $domain "accounts" . }}{{ end -}}
{{- with $given.referrals }}{{ $_ := set $domain "referrals" . }}{{ end -}}
{{- with $given.keytabs }}{{ $_ := set $domain "keytabs" . }}{{ end -}}
{{- $_ := set $domain "caFile" (printf (ternary "/cas/%d/ca.crt" "/config/ca-%d.crt" (not (empty $given.caConfigMap))) $index) -}}
{{- $domains = append $domains $domain -}}
{{- end -}}
{{ dict "domains" $domains | toYaml }}
{{- end -}}

