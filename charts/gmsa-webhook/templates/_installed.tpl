{{/*
What is installed in the cluster: for what an upgrade must keep, and for changes that must be refused; never for what is rendered anew. Nothing is found where
Helm renders without a cluster (`helm template`, Argo CD).
*/}}

{{/* "true" where Helm renders for a cluster that it can read: every cluster has this namespace. */}}
{{- define "gmsa-webhook.hasCluster" -}}
{{- if lookup "v1" "Namespace" "" "kube-system" }}true{{ end -}}
{{- end -}}

{{/* The Deployment, as YAML. */}}
{{- define "gmsa-webhook.installed" -}}
{{- with lookup "apps/v1" "Deployment" (include "gmsa-webhook.namespace" .) (include "gmsa-webhook.fullname" .) }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{/*
Where the installed webhook has its certificate from, as YAML: "source" (self-managed, published: the webhook publishes the CA of a Secret, injected: cert-manager
writes the caBundle, values: the caBundle is the values'), the "secret" that is mounted, and "settled" where no pod of before is left. Empty where that cannot be told.
*/}}
{{- define "gmsa-webhook.installedSource" -}}
{{- $deployment := include "gmsa-webhook.installed" . | fromYaml -}}
{{- $pod := dig "spec" "template" "spec" dict $deployment -}}
{{- $args := list -}}
{{- range $pod.containers }}{{ $args = concat $args (.args | default list) }}{{ end -}}
{{- $source := "" -}}
{{- if regexMatch "--self-managed-secret" (join " " $args) -}}
{{- $source = "self-managed" -}}
{{- else if regexMatch "--publish-ca" (join " " $args) -}}
{{- $source = "published" -}}
{{- else if $deployment -}}
{{- with lookup "admissionregistration.k8s.io/v1" "ValidatingWebhookConfiguration" "" (include "gmsa-webhook.fullname" .) -}}
{{- if hasKey (.metadata.annotations | default dict) "cert-manager.io/inject-ca-from" -}}
{{- $source = "injected" -}}
{{- else if .webhooks | default list | first | default dict | dig "clientConfig" "caBundle" "" -}}
{{- $source = "values" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $source -}}
{{- $status := $deployment.status | default dict -}}
{{- $secret := "" -}}
{{- range $pod.volumes }}{{ if eq .name "tls" }}{{ $secret = dig "secret" "secretName" "" . }}{{ end }}{{ end -}}
{{- $settled := and (eq (int $status.observedGeneration) (int $deployment.metadata.generation)) (eq (int $status.replicas) (int $status.updatedReplicas)) -}}
{{ dict "source" $source "secret" $secret "settled" $settled | toYaml }}
{{- end -}}
{{- end -}}

{{/*
Changes of the certificate's source that would leave the API server without trust in the pods of before, or in the new ones: the Deployment changes before the
webhook configurations do, and pods are replaced after both. docs/certificates.md has the table of all changes.
*/}}
{{- define "gmsa-webhook.checkSource" -}}
{{- $installed := include "gmsa-webhook.installedSource" . | fromYaml -}}
{{- $source := $installed.source -}}
{{- $steps := "docs/certificates.md lists the steps" -}}
{{- if $source -}}
{{- $certificates := .Values.certificates -}}
{{- $isSame := and (eq $source "published") (eq $installed.secret (include "gmsa-webhook.certificateSecret" .)) -}}
{{- $settle := printf "pods of before are still being replaced, and the CA that they are trusted by would go: wait for kubectl -n %s rollout status deployment/%s, then upgrade again" (include "gmsa-webhook.namespace" .) (include "gmsa-webhook.fullname" .) -}}
{{- if include "gmsa-webhook.publishesCa" . -}}
{{- /* An install that takes objects over takes nothing away from them. */ -}}
{{- if and .Release.IsUpgrade (eq $source "values") (not $certificates.formerCaBundle) -}}
{{- fail (printf "without certificates.caBundle the API server trusts no pod until the new ones are ready, so pods that use GMSA would be refused: set certificates.formerCaBundle to what certificates.caBundle was, and leave it out of the next upgrade; %s" $steps) -}}
{{- end -}}
{{- if and (ne $source "values") $certificates.formerCaBundle -}}
{{- fail (printf "certificates.formerCaBundle would replace what the webhook has published since: it is for the one upgrade that takes certificates.caBundle away, leave it out now; %s" $steps) -}}
{{- end -}}
{{- else if eq (include "gmsa-webhook.mode" .) "secret" -}}
{{- if and (ne $source "values") (not $isSame) -}}
{{- fail (printf "with certificates.caBundle the API server would trust the new pods alone, and refuse pods that use GMSA while old ones answer: upgrade with certificates.mode=secret and no certificates.caBundle first, wait until all pods are replaced, then set certificates.caBundle; %s" $steps) -}}
{{- end -}}
{{- if and $isSame (not $installed.settled) -}}
{{- fail $settle -}}
{{- end -}}
{{- else -}}
{{- if and (ne $source "injected") (not $isSame) -}}
{{- fail (printf "cert-manager would replace the caBundle while old pods answer, so pods that use GMSA would be refused: add certificates.certManager.injectCa=false, wait until all pods are replaced, then leave it out of the next upgrade; %s" $steps) -}}
{{- end -}}
{{- if and $isSame (not $installed.settled) -}}
{{- fail $settle -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
