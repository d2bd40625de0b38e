{{/*
What all webhooks share: where the API server finds the webhook, whom it trusts there, and which namespaces it asks about.
*/}}

{{- define "gmsa-webhook.configurationMetadata" -}}
labels:
  {{- include "gmsa-webhook.labels" . | nindent 2 }}
{{- if eq (include "gmsa-webhook.mode" .) "cert-manager" }}
annotations:
  cert-manager.io/inject-ca-from: {{ .Release.Namespace }}/{{ .Release.Name }}-ca
{{- end }}
{{- end -}}

{{/* Of dict "root" CONTEXT "path" PATH. There is no key caBundle where somebody else writes it: applying this must not take it away. */}}
{{- define "gmsa-webhook.clientConfig" -}}
clientConfig:
  service:
    name: {{ .root.Release.Name }}
    namespace: {{ .root.Release.Namespace }}
    port: {{ int .root.Values.service.port }}
    path: {{ .path }}
  {{- with include "gmsa-webhook.caBundle" .root }}
  caBundle: {{ . }}
  {{- end }}
{{- end -}}

{{/* Without match conditions the API server asks about every pod: the webhook's own and the cluster's must not wait for it. */}}
{{- define "gmsa-webhook.namespaceSelector" -}}
{{- if or .Values.webhooks.optOutLabel (not (include "gmsa-webhook.hasMatchConditions" .)) -}}
namespaceSelector:
  matchExpressions:
    {{- if not (include "gmsa-webhook.hasMatchConditions" .) }}
    - key: kubernetes.io/metadata.name
      operator: NotIn
      values: {{ list "kube-system" .Release.Namespace | uniq | toJson }}
    {{- end }}
    {{- with .Values.webhooks.optOutLabel }}
    - key: {{ . }}
      operator: NotIn
      values: ["true"]
    {{- end }}
{{- end -}}
{{- end -}}

{{/* Of dict "root" CONTEXT "conditions" LIST of dict "name" "expression". */}}
{{- define "gmsa-webhook.matchConditions" -}}
{{- if include "gmsa-webhook.hasMatchConditions" .root -}}
matchConditions:
  {{- range .conditions }}
  - name: {{ .name }}
    expression: |-
      {{- .expression | nindent 6 }}
  {{- end }}
{{- end -}}
{{- end -}}
