{{/*
What the schema cannot say: values that do not go together, and forms of text in words instead of patterns. Every failure names
the values and the way out.
*/}}
{{- define "gmsa-webhook.check" -}}
{{- include "gmsa-webhook.checkForms" . -}}
{{- include "gmsa-webhook.checkImage" . -}}
{{- include "gmsa-webhook.checkPorts" . -}}
{{- include "gmsa-webhook.checkCertificates" . -}}
{{- include "gmsa-webhook.checkReplicas" . -}}
{{- include "gmsa-webhook.checkPod" . -}}
{{- include "gmsa-webhook.checkWebhooks" . -}}
{{- include "gmsa-webhook.checkAlerts" . -}}
{{- end -}}

{{/* Changes of alerts that there are. */}}
{{- define "gmsa-webhook.checkAlerts" -}}
{{- $alerts := list -}}
{{- range (.Files.Get "files/alerts.yaml" | fromYaml).groups -}}
{{- range .rules }}{{ $alerts = append $alerts .alert }}{{ end -}}
{{- end -}}
{{- range $name, $change := .Values.prometheusRule.alerts -}}
{{- if not (has $name $alerts) -}}
{{- fail (printf "prometheusRule.alerts has %q, which is no alert: there are %s" $name (join ", " $alerts)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Pods that are evicted, scaled and ended one after the other. */}}
{{- define "gmsa-webhook.checkReplicas" -}}
{{- $scaling := .Values.autoscaling -}}
{{- if and $scaling.enabled (gt (int $scaling.minReplicas) (int $scaling.maxReplicas)) -}}
{{- fail (printf "autoscaling.minReplicas (%d) is greater than autoscaling.maxReplicas (%d)" (int $scaling.minReplicas) (int $scaling.maxReplicas)) -}}
{{- end -}}
{{- $resources := include "gmsa-webhook.resources" . | fromYaml -}}
{{- if and $scaling.enabled (not (dig "requests" "cpu" "" $resources)) (not (dig "limits" "cpu" "" $resources)) -}}
{{- fail "autoscaling.enabled needs resources.requests.cpu, because it scales by the share of it that is used" -}}
{{- end -}}
{{- with .Values.podDisruptionBudget -}}
{{- $neverUnavailable := regexMatch "^0%?$" (toString .maxUnavailable) -}}
{{- if and .enabled (not (kindIs "invalid" .minAvailable)) (not (kindIs "invalid" .maxUnavailable)) (not $neverUnavailable) -}}
{{- fail "podDisruptionBudget.minAvailable and podDisruptionBudget.maxUnavailable are both set: leave one of them blank" -}}
{{- end -}}
{{- $key := ternary "autoscaling.minReplicas" "replicaCount" $scaling.enabled -}}
{{- $replicas := int (ternary $scaling.minReplicas $.Values.replicaCount $scaling.enabled) -}}
{{- $all := or (eq (toString .minAvailable) "100%") (and (regexMatch "^[0-9]+$" (toString .minAvailable)) (ge (int .minAvailable) $replicas)) -}}
{{- if and .enabled (gt $replicas 0) (not (kindIs "invalid" .minAvailable)) $all -}}
{{- fail (printf "podDisruptionBudget.minAvailable (%s) leaves none of the %d pods (%s) to evict, so no node that runs one can be drained: set it lower, or leave it blank" (toString .minAvailable) $replicas $key) -}}
{{- end -}}
{{- /* Values of before say 0 beside minAvailable, which then decides. */ -}}
{{- if and .enabled $neverUnavailable (kindIs "invalid" .minAvailable) -}}
{{- fail (printf "podDisruptionBudget.maxUnavailable (%s) lets no pod be evicted, so no node that runs one can be drained: set it higher, or leave it blank" (toString .maxUnavailable)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Settings of the pod that would contradict the chart's own. */}}
{{- define "gmsa-webhook.checkPod" -}}
{{- range $key := list "podLabels" "commonLabels" -}}
{{- if hasKey (get $.Values $key) "app" -}}
{{- fail (printf "%s.app would replace the label by which the Service finds the pods: choose another key" $key) -}}
{{- end -}}
{{- end -}}
{{- $own := dict "HTTPS_PORT" "containerPort" "ADMIN_LISTEN" "adminPort" "LOG_LEVEL" "logLevel" "LOG_FORMAT" "logFormat" "RANDOM_HOSTNAME" "randomHostname"
  "TLS_CRT" "certificates.secretName" "TLS_KEY" "certificates.secretName" "QPS" "qps" "BURST" "burst" "ENFORCEMENT" "webhooks.enforcement" -}}
{{- $names := list -}}
{{- range $variable := .Values.extraEnv -}}
{{- with get $own $variable.name -}}
{{- fail (printf "extraEnv sets %s, which the chart sets from %s: use that value" $variable.name .) -}}
{{- end -}}
{{- if has $variable.name $names -}}
{{- fail (printf "extraEnv sets %s twice" $variable.name) -}}
{{- end -}}
{{- $names = append $names $variable.name -}}
{{- end -}}
{{- $drain := 20 -}}
{{- if and (lt (int .Values.terminationGracePeriodSeconds) $drain) (not (regexMatch "--(shutdown-delay|drain-timeout)" (join " " .Values.extraArgs))) -}}
{{- fail (printf "terminationGracePeriodSeconds (%d) is less than the %d seconds that the webhook takes to stop: 5 until its endpoints are forgotten, 15 for what is in flight" (int .Values.terminationGracePeriodSeconds) $drain) -}}
{{- end -}}
{{- end -}}

{{/* Webhooks and the guard. */}}
{{- define "gmsa-webhook.checkWebhooks" -}}
{{- $guard := .Values.guard -}}
{{- $webhooks := .Values.webhooks -}}
{{- $hasMatchConditions := include "gmsa-webhook.hasMatchConditions" . -}}
{{- if and $guard.enabled (not $hasMatchConditions) -}}
{{- fail (printf "guard.enabled needs Kubernetes 1.30 or later, and this is %s: set guard.enabled=false" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- if and (has "Deny" $guard.validationActions) (has "Warn" $guard.validationActions) -}}
{{- fail "guard.validationActions has Deny and Warn, which Kubernetes does not take together: a denial is a warning already" -}}
{{- end -}}
{{- $static := .Values.staticPolicies -}}
{{- if and (or $guard.enabled $static.enabled) (has "Deny" $guard.validationActions) (eq $webhooks.enforcement "Warn") -}}
{{- fail (printf "webhooks.enforcement=Warn admits what the guard denies: set guard.validationActions={Warn,Audit} too, or %s=false" (ternary "guard.enabled" "staticPolicies.enabled" $guard.enabled)) -}}
{{- end -}}
{{- if and $webhooks.warnNamespaces (eq $webhooks.enforcement "Warn") -}}
{{- fail "webhooks.warnNamespaces has no effect with webhooks.enforcement=Warn, which warns in every namespace: set webhooks.enforcement=Enforce, or remove webhooks.warnNamespaces" -}}
{{- end -}}
{{- if kindIs "slice" $static.admins -}}
{{- fail "staticPolicies.admins is a list, in which a user with the name of a group counts as the group: name users in staticPolicies.admins.users, and groups in staticPolicies.admins.groups" -}}
{{- end -}}
{{- $admins := concat $static.admins.users $static.admins.groups -}}
{{- if and $static.enabled (not $admins) -}}
{{- fail "staticPolicies.admins is empty, so nobody could upgrade or uninstall this release: name the users and groups that may, such as staticPolicies.admins.groups={kubeadm:cluster-admins}" -}}
{{- end -}}
{{- range $user := $static.admins.users -}}
{{- if or (has $user (list "kubeadm:cluster-admins" "system:masters")) (hasPrefix "system:serviceaccounts" $user) -}}
{{- fail (printf "staticPolicies.admins.users has %q, which is a group: name it in staticPolicies.admins.groups" $user) -}}
{{- end -}}
{{- end -}}
{{- range $group := $static.admins.groups -}}
{{- if hasPrefix "system:serviceaccount:" $group -}}
{{- fail (printf "staticPolicies.admins.groups has %q, which is a user: name it in staticPolicies.admins.users" $group) -}}
{{- end -}}
{{- end -}}
{{- $account := printf "system:serviceaccount:%s:%s" (include "gmsa-webhook.namespace" .) (include "gmsa-webhook.serviceAccount" .) -}}
{{- range $everybody := list "system:anonymous" "system:authenticated" "system:serviceaccounts" "system:unauthenticated" $account (printf "system:serviceaccounts:%s" (include "gmsa-webhook.namespace" .)) -}}
{{- if and $static.enabled (has $everybody $admins) -}}
{{- fail (printf "staticPolicies.admins has %q, which is what the policies protect against: name the users and groups that upgrade this release" $everybody) -}}
{{- end -}}
{{- end -}}
{{- if and $hasMatchConditions (not $webhooks.first.enabled) (not $webhooks.last.enabled) -}}
{{- fail "webhooks.first.enabled and webhooks.last.enabled are both false: no pod would get its contents" -}}
{{- end -}}
{{- if and $webhooks.credentialSpecs.strict (not $webhooks.credentialSpecs.enabled) -}}
{{- fail "webhooks.credentialSpecs.strict needs webhooks.credentialSpecs.enabled=true" -}}
{{- end -}}
{{- if and $webhooks.credentialSpecs.strict .Values.credential.enabled (not $hasMatchConditions) -}}
{{- fail (printf "webhooks.credentialSpecs.strict and credential.enabled go together from Kubernetes 1.30 on, and this is %s: Helm creates the credential spec before the webhook can judge it. Create the credential spec yourself, or set webhooks.credentialSpecs.strict=false" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- end -}}

{{/* Texts that must have a certain form: value, pattern, the form in words. An empty text is one that is not set. */}}
{{- define "gmsa-webhook.checkForms" -}}
{{- $v := .Values -}}
{{- $join := $v.credential.domainJoinConfig -}}
{{- $dnsName := "^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$" -}}
{{- $dnsDomain := "^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$" -}}
{{- $count := "^[0-9]+%?$" -}}
{{- $duration := "^([0-9]+(\\.[0-9]+)?(h|m|s|ms))+$" -}}
{{- $label := "^[a-z]([a-z0-9-]*[a-z0-9])?$" -}}
{{- $monitors := dict "serviceMonitor" $v.serviceMonitor "podMonitor" $v.podMonitor -}}
{{- $forms := list
  (list "the name of all objects" (include "gmsa-webhook.fullname" .) $label "a DNS label, which starts with a letter and has no dots: set fullnameOverride")
  (list "namespaceOverride" $v.namespaceOverride "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$" "a namespace's name")
  (list "serviceAccount.name" $v.serviceAccount.name $dnsName "a service account's name")
  (list "certificates.certManager.duration" $v.certificates.certManager.duration $duration "a duration with units, such as 2160h")
  (list "certificates.certManager.renewBefore" $v.certificates.certManager.renewBefore $duration "a duration with units, such as 720h")
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
  (list "authorizationCacheTtl" $v.authorizationCacheTtl $duration "a duration with units, such as 10s or 1m30s")
  (list "podDisruptionBudget.minAvailable" $v.podDisruptionBudget.minAvailable $count "a number or a percentage")
  (list "podDisruptionBudget.maxUnavailable" $v.podDisruptionBudget.maxUnavailable $count "a number or a percentage")
  (list "clientCa.configMapName" $v.clientCa.configMapName $dnsName "a ConfigMap's name")
-}}
{{- range $namespace := $v.webhooks.warnNamespaces -}}
{{- $forms = append $forms (list "webhooks.warnNamespaces" $namespace "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$" "a namespace's name") -}}
{{- end -}}
{{- range $name, $monitor := $monitors -}}
{{- range $key := list "interval" "scrapeTimeout" -}}
{{- $forms = append $forms (list (printf "%s.%s" $name $key) (get $monitor $key) "^([0-9]+(h|m|s|ms))+$" "a duration with units, such as 30s") -}}
{{- end -}}
{{- end -}}
{{- range $name, $threshold := $v.prometheusRule.thresholds -}}
{{- $forms = append $forms (list (printf "prometheusRule.thresholds.%s" $name) $threshold "^[0-9]+(\\.[0-9]+)?$" "a number") -}}
{{- end -}}
{{- range $name, $change := $v.prometheusRule.alerts -}}
{{- $forms = append $forms (list (printf "prometheusRule.alerts.%s.for" $name) (get ($change | default dict) "for") "^([0-9]+(d|h|m|s))+$" "a duration with units, such as 10m") -}}
{{- end -}}
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
{{- if and .Values.certificates.certManager.issuerRef (not .Values.certificates.certManager.issuerRef.name) -}}
{{- fail "certificates.certManager.issuerRef has no name: name the Issuer or ClusterIssuer" -}}
{{- end -}}
{{- if and (ne $mode "self-managed") (eq .Values.certificates.secretName (include "gmsa-webhook.ownSecret" .)) -}}
{{- fail (printf "certificates.secretName %q is the Secret of mode self-managed: choose another one" .Values.certificates.secretName) -}}
{{- end -}}
{{- if and .Values.certificates.formerCaBundle (not (include "gmsa-webhook.publishesCa" .)) -}}
{{- fail "certificates.formerCaBundle is for modes in which the webhook publishes its CA: remove it, or the value that says otherwise (certificates.caBundle, certificates.certManager.injectCa)" -}}
{{- end -}}
{{- with include "gmsa-webhook.caBundle" . -}}
{{- if not (contains "-----BEGIN CERTIFICATE-----" (b64dec .)) -}}
{{- fail (printf "certificates.%s holds no certificate: it must be a CA certificate in PEM, or base64 of that" (ternary "formerCaBundle" "caBundle" (include "gmsa-webhook.publishesCa" $ | empty | not))) -}}
{{- end -}}
{{- end -}}
{{- include "gmsa-webhook.checkSource" . -}}
{{- end -}}
