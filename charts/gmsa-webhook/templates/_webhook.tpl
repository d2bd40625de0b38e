{{/*
Parts that all webhooks share: the Service and CA, and the namespaces and objects that the API server asks about.
*/}}

{{/* Takes a dict: "root" CONTEXT, and "name" where it differs from the name of all objects. */}}
{{- define "gmsa-webhook.configurationMetadata" -}}
{{- $annotations := deepCopy .root.Values.webhooks.annotations -}}
{{- if and (eq (include "gmsa-webhook.mode" .root) "cert-manager") .root.Values.certificates.certManager.injectCa -}}
{{- $_ := set $annotations "cert-manager.io/inject-ca-from" (printf "%s/%s" (include "gmsa-webhook.namespace" .root) (include "gmsa-webhook.caCertificate" .root)) -}}
{{- end -}}
{{ include "gmsa-webhook.metadata" (dict "root" .root "name" .name "cluster" true "annotations" $annotations) }}
{{- end -}}

{{/* The Certificate with the CA that the API server must trust, in its Secret. */}}
{{- define "gmsa-webhook.caCertificate" -}}
{{ include "gmsa-webhook.fullname" . }}{{ if not .Values.certificates.certManager.issuerRef }}-ca{{ end }}
{{- end -}}

{{/* Takes a dict: "root" CONTEXT, "path" PATH. The key caBundle is absent where the webhook or cert-manager writes it: applying this must not remove it. */}}
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

{{/* Without match conditions the API server asks about every pod. Pods of these namespaces must not wait for the webhook: kube-system and its own. */}}
{{- define "gmsa-webhook.systemNamespaces" -}}
{{ list "kube-system" (include "gmsa-webhook.namespace" .) | uniq | toJson }}
{{- end -}}

{{/* Takes a dict: "root" CONTEXT, and without match conditions "operator" In to select the system namespaces alone. */}}
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

{{/* Takes a dict: "root" CONTEXT, "conditions" LIST of dict "name" "expression". */}}
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
