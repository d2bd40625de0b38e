{{/*
What a ServiceMonitor and a PodMonitor share.
*/}}

{{/* How metrics are read, from the values of the monitor. */}}
{{- define "gmsa-webhook.scrape" -}}
path: /metrics
interval: {{ .interval }}
{{- with .scrapeTimeout }}
scrapeTimeout: {{ . }}
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

{{/* A monitor in another namespace must be told where its targets are. */}}
{{- define "gmsa-webhook.scrapedNamespace" -}}
{{- if .namespace -}}
namespaceSelector:
  matchNames: [{{ include "gmsa-webhook.namespace" .root }}]
{{- end -}}
{{- end -}}
