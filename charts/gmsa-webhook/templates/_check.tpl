{{/*
What the schema cannot say: values that do not go together, and forms of text in words instead of patterns. Every failure names
the values and the way out.
*/}}
{{- define "gmsa-webhook.check" -}}
{{- include "gmsa-webhook.checkForms" . -}}
{{- include "gmsa-webhook.checkImage" . -}}
{{- include "gmsa-webhook.checkPorts" . -}}
{{- include "gmsa-webhook.checkCertificates" . -}}
{{- if gt (len .Release.Name) 50 -}}
{{- fail (printf "the release name %q has more than 50 characters: names made from it would be longer than Kubernetes allows" .Release.Name) -}}
{{- end -}}
{{- with .Values.podDisruptionBudget -}}
{{- if and .enabled (not (kindIs "invalid" .minAvailable)) (not (kindIs "invalid" .maxUnavailable)) -}}
{{- fail "podDisruptionBudget.minAvailable and podDisruptionBudget.maxUnavailable are both set: set one of them to null" -}}
{{- end -}}
{{- end -}}
{{- if and .Values.autoscaling.enabled (gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas)) -}}
{{- fail (printf "autoscaling.minReplicas (%d) is greater than autoscaling.maxReplicas (%d)" (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas)) -}}
{{- end -}}
{{- if and .Values.guard.enabled (not (include "gmsa-webhook.hasMatchConditions" .)) -}}
{{- fail (printf "guard.enabled needs Kubernetes 1.30 or later, and this is %s: set guard.enabled=false" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- if and (has "Deny" .Values.guard.validationActions) (has "Warn" .Values.guard.validationActions) -}}
{{- fail "guard.validationActions has Deny and Warn, which Kubernetes does not take together: a denial is a warning already" -}}
{{- end -}}
{{- if and .Values.webhooks.credentialSpecs.strict (not .Values.webhooks.credentialSpecs.enabled) -}}
{{- fail "webhooks.credentialSpecs.strict needs webhooks.credentialSpecs.enabled=true" -}}
{{- end -}}
{{- end -}}

{{/* Texts that must have a certain form: value, pattern, the form in words. An empty text is one that is not set. */}}
{{- define "gmsa-webhook.checkForms" -}}
{{- $v := .Values -}}
{{- $join := $v.credential.domainJoinConfig -}}
{{- $dnsName := "^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$" -}}
{{- $dnsDomain := "^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$" -}}
{{- $count := "^[0-9]+%?$" -}}
{{- $forms := list
  (list "containerPort" $v.containerPort "^[0-9]+$" "a port: a number from 1 to 65535")
  (list "image.repository" $v.image.repository "^([^/@\\s]+/)*[^/:@\\s]+$" "an image without tag and digest, such as registry.example.com/gmsa-webhook")
  (list "image.tag" $v.image.tag "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$" "an image's tag")
  (list "image.digest" $v.image.digest "^sha256:[a-f0-9]{64}$" "a digest: sha256: and 64 hexadecimal digits")
  (list "certificates.secretName" $v.certificates.secretName $dnsName "a Secret's name")
  (list "credential.domainJoinConfig.dnsName" $join.dnsName $dnsDomain "a domain's DNS name, such as corp.example.com")
  (list "credential.domainJoinConfig.dnsTreeName" $join.dnsTreeName $dnsDomain "a domain's DNS name, such as example.com")
  (list "credential.domainJoinConfig.guid" $join.guid "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$" "a GUID without braces")
  (list "credential.domainJoinConfig.machineAccountName" $join.machineAccountName "^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$" "an account's name without the trailing $ and without a domain")
  (list "credential.domainJoinConfig.netBiosName" $join.netBiosName "^[^\\\\/:*?\"<>|\\s]+$" "a domain's NetBIOS name, such as CORP")
  (list "credential.domainJoinConfig.sid" $join.sid "^S-1-5-21(-[0-9]+){3}$" "a domain's SID: S-1-5-21 and three numbers (an account's has four)")
  (list "credential.hostAccountConfig.portableCcgVersion" $v.credential.hostAccountConfig.portableCcgVersion "^1$" "\"1\"")
  (list "webhooks.optOutLabel" $v.webhooks.optOutLabel "^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$" "a label's key, such as windows.k8s.io/disabled")
  (list "logLevel" $v.logLevel "^(?i)(error|warn|warning|info|debug|trace|\\S+=\\S+)$" "a level: error, warn, info, debug or trace")
  (list "authorizationCacheTtl" $v.authorizationCacheTtl "^([0-9]+(\\.[0-9]+)?(h|m|s|ms))+$" "a duration with units, such as 10s or 1m30s")
  (list "podDisruptionBudget.minAvailable" $v.podDisruptionBudget.minAvailable $count "a number or a percentage")
  (list "podDisruptionBudget.maxUnavailable" $v.podDisruptionBudget.maxUnavailable $count "a number or a percentage")
  (list "clientCa.configMapName" $v.clientCa.configMapName $dnsName "a ConfigMap's name")
  (list "serviceMonitor.interval" $v.serviceMonitor.interval "^([0-9]+(h|m|s|ms))+$" "a duration with units, such as 30s")
-}}
{{- range $cidr := $v.networkPolicy.apiServerCidrs -}}
{{- $forms = append $forms (list "networkPolicy.apiServerCidrs" $cidr "^[0-9A-Fa-f.:]+/[0-9]{1,3}$" "a CIDR, such as 10.0.0.1/32") -}}
{{- end -}}
{{- range $form := $forms -}}
{{- $text := ternary "" (index $form 1 | toString) (kindIs "invalid" (index $form 1)) -}}
{{- if and $text (not (regexMatch (index $form 2) $text)) -}}
{{- fail (printf "%s %q is not %s" (index $form 0) $text (index $form 3)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "gmsa-webhook.checkImage" -}}
{{- $image := .Values.image -}}
{{- $fix := printf "add --set image.repository=REPOSITORY --set image.tag=%s, or change both in your values file" .Chart.AppVersion -}}
{{- if hasSuffix "k8s-gmsa-webhook" $image.repository -}}
{{- fail (printf "image.repository %q is the Go webhook's, and this chart runs another program: %s" $image.repository $fix) -}}
{{- end -}}
{{- if and (not $image.digest) (regexMatch "^v0\\.([1-9]|1[0-3])\\.[0-9]+$" (toString $image.tag)) -}}
{{- fail (printf "image.tag %q is the Go webhook's, and this chart runs another program: %s" (toString $image.tag) $fix) -}}
{{- end -}}
{{- end -}}

{{- define "gmsa-webhook.checkPorts" -}}
{{- $port := int .Values.containerPort -}}
{{- if or (lt $port 1) (gt $port 65535) -}}
{{- fail (printf "containerPort %q is not a port: a number from 1 to 65535" (toString .Values.containerPort)) -}}
{{- end -}}
{{- if eq $port (int .Values.adminPort) -}}
{{- fail (printf "containerPort and adminPort are both %d: they need different ports" $port) -}}
{{- end -}}
{{- if .Values.hostNetwork -}}
{{- range $name, $port := dict "containerPort" $port "adminPort" (int .Values.adminPort) -}}
{{- if eq $port 10250 -}}
{{- fail (printf "%s is 10250, which is the kubelet's with hostNetwork: set another one, such as %s=8443" $name $name) -}}
{{- end -}}
{{- if lt $port 1024 -}}
{{- fail (printf "%s is %d, which takes root with hostNetwork, and the webhook is not root: set one from 1024, such as %s=8443" $name $port $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "gmsa-webhook.checkCertificates" -}}
{{- $mode := include "gmsa-webhook.mode" . -}}
{{- if and (eq $mode "self-managed") .Values.certificates.caBundle -}}
{{- fail "certificates.caBundle is set, but in mode self-managed the webhook makes its own CA: set certificates.mode=secret to serve your certificate, or remove certificates.caBundle" -}}
{{- end -}}
{{- if and (ne $mode "self-managed") (not .Values.certificates.secretName) -}}
{{- fail (printf "certificates.secretName is empty, but mode %s serves the certificate of that Secret" $mode) -}}
{{- end -}}
{{- if and (ne $mode "self-managed") (eq .Values.certificates.secretName (printf "%s-tls" .Release.Name)) -}}
{{- fail (printf "certificates.secretName %q is the Secret of mode self-managed: choose another one" .Values.certificates.secretName) -}}
{{- end -}}
{{- with include "gmsa-webhook.caBundle" . -}}
{{- if not (contains "-----BEGIN CERTIFICATE-----" (b64dec .)) -}}
{{- fail "certificates.caBundle holds no certificate: it must be a CA certificate in PEM, or base64 of that" -}}
{{- end -}}
{{- end -}}
{{- end -}}
