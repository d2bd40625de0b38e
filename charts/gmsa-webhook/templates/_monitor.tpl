{{/*
What the objects of monitoring share.
*/}}

{{/* Matchers for the pods of this release and no others: the pods of a release whose name begins with this one's have one more part. */}}
{{- define "gmsa-webhook.ownPods" -}}
namespace={{ include "gmsa-webhook.namespace" . | quote }},pod=~{{ printf "%s-[a-z0-9]+(-[a-z0-9]+)?" (include "gmsa-webhook.fullname" .) | quote }}
{{- end -}}

{{/* How metrics are read, from the values of the monitor. */}}
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

{{/* A monitor in another namespace must be told where its targets are. */}}
{{- define "gmsa-webhook.scrapedNamespace" -}}
{{- if .namespace -}}
namespaceSelector:
  matchNames: [{{ include "gmsa-webhook.namespace" .root | toYaml }}]
{{- end -}}
{{- end -}}
