{{/*
What all webhooks share: where the API server finds the webhook, whom it trusts there, and which namespaces and objects it asks about.
*/}}

{{/* Of dict "root" CONTEXT, and "name" where it is not that of all objects. */}}
{{- define "gmsa-webhook.configurationMetadata" -}}
{{- $annotations := deepCopy .root.Values.webhooks.annotations -}}
{{- if and (eq (include "gmsa-webhook.mode" .root) "cert-manager") .root.Values.certificates.certManager.injectCa -}}
{{- $_ := set $annotations "cert-manager.io/inject-ca-from" (printf "%s/%s" (include "gmsa-webhook.namespace" .root) (include "gmsa-webhook.caCertificate" .root)) -}}
{{- end -}}
{{ include "gmsa-webhook.metadata" (dict "root" .root "name" .name "cluster" true "annotations" $annotations) }}
{{- end -}}

{{/* The Certificate whose Secret has the CA that the API server must trust. */}}
{{- define "gmsa-webhook.caCertificate" -}}
{{ include "gmsa-webhook.fullname" . }}{{ if not .Values.certificates.certManager.issuerRef }}-ca{{ end }}
{{- end -}}

{{/* Of dict "root" CONTEXT "path" PATH. There is no key caBundle where somebody else writes it: applying this must not take it away. */}}
{{- define "gmsa-webhook.clientConfig" -}}
clientConfig:
  service:
    name: {{ include "gmsa-webhook.fullname" .root | toYaml }}
    namespace: {{ include "gmsa-webhook.namespace" .root | toYaml }}
    port: {{ int .root.Values.service.port }}
    path: {{ .path }}
  {{- with include "gmsa-webhook.caBundle" .root }}
  caBundle: {{ . }}
  {{- end }}
{{- end -}}

{{/* The namespaces that must not wait for the webhook where the API server asks about every pod: the cluster's and the webhook's own. */}}
{{- define "gmsa-webhook.systemNamespaces" -}}
{{ list "kube-system" (include "gmsa-webhook.namespace" .) | uniq | toJson }}
{{- end -}}

{{/* Of dict "root" CONTEXT, and "operator" In for the system namespaces alone, where there are no match conditions. */}}
{{- define "gmsa-webhook.selectors" -}}
{{- $webhooks := .root.Values.webhooks -}}
{{- $expressions := list -}}
{{- if not (include "gmsa-webhook.hasMatchConditions" .root) -}}
{{- $system := include "gmsa-webhook.systemNamespaces" .root | fromJsonArray -}}
{{- $expressions = append $expressions (dict "key" "kubernetes.io/metadata.name" "operator" (.operator | default "NotIn") "values" $system) -}}
{{- end -}}
{{- with $webhooks.optOutLabel -}}
{{- $expressions = append $expressions (dict "key" . "operator" "NotIn" "values" (list "true")) -}}
{{- end -}}
{{- $selector := deepCopy $webhooks.namespaceSelector -}}
{{- with concat $expressions (get $selector "matchExpressions" | default list) -}}
{{- $_ := set $selector "matchExpressions" . -}}
{{- end -}}
{{- with $selector }}
namespaceSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $webhooks.objectSelector }}
objectSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
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
