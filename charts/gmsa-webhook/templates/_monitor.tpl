{{/*
Parts that monitoring objects share.
*/}}

{{/* Matchers for the pods of this release alone. A release whose name begins with this name has pods with one more part in their names. */}}
{{- define "gmsa-webhook.ownPods" -}}
namespace={{ include "gmsa-webhook.namespace" . | quote }},pod=~{{ printf "%s-[a-z0-9]+(-[a-z0-9]+)?" (include "gmsa-webhook.fullname" .) | quote }}
{{- end -}}

{{/* The endpoint's fields, from the values of the monitor. */}}
{{- define "gmsa-webhook.scrape" -}}
path: /metrics
interval: {{ .interval | toYaml }}
{{- with .scrapeTimeout }}
scrapeTimeout: {{ . | toYaml }}
{{- end }}
{{- with .relabelings }}
relabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .metricRelabelings }}
metricRelabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* A monitor in another namespace must name the namespace of its targets. */}}
{{- define "gmsa-webhook.scrapedNamespace" -}}
{{- if .namespace -}}
namespaceSelector:
  matchNames: [{{ include "gmsa-webhook.namespace" .root | toYaml }}]
{{- end -}}
{{- end -}}
