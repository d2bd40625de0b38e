{{/*
What is installed in the cluster: for what an upgrade must keep, and for changes that must be refused; never for what is rendered anew. Nothing is found where
Helm renders without a cluster (`helm template`, Argo CD).
*/}}

{{/* The Deployment, as YAML. */}}
{{- define "gmsa-webhook.installed" -}}
{{- with lookup "apps/v1" "Deployment" (include "gmsa-webhook.namespace" .) (include "gmsa-webhook.fullname" .) }}{{ toYaml . }}{{ end -}}
{{- end -}}
