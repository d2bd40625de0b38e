{{/*
What the schema cannot say, and what would be an outage or a wrong identity: values that do not go together, that do not fit what is installed, or that have a form which only words explain.
What the API server or an operator refuses at the same moment, without harm to running pods, is left to them. Every message begins with `values: NAME` and names the way out.
*/}}
{{- define "gmsa-webhook.check" -}}
{{- range list "Names" "Forms" "Image" "Memory" "Cidrs" "Pod" "Certificates" "Identity" "Namespaces" "Replicas" "Webhooks" "Tickets" "Admins" "Alerts" "Monitoring" -}}
{{- include (printf "gmsa-webhook.check%s" .) $ -}}
{{- end -}}
{{- end -}}

{{/* Forms of text. */}}
{{- define "gmsa-webhook.checkForms" -}}
{{- $v := .Values -}}
{{- $join := $v.credential.domainJoinConfig -}}
{{- $dnsDomain := "^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$" -}}
{{- $namespace := "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$" -}}
{{- $object := "^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$" -}}
{{- $level := "(off|error|warn|info|debug|trace)" -}}
{{- $number := "([0-9]{1,9}|[1-3][0-9]{9}|4[01][0-9]{8}|42[0-8][0-9]{7}|429[0-3][0-9]{6}|4294[0-8][0-9]{5}|42949[0-5][0-9]{4}|429496[0-6][0-9]{3}|4294967[01][0-9]{2}|42949672[0-8][0-9]|429496729[0-5])" -}}
{{- $forms := list
  (list "fullnameOverride: the name of all objects" (include "gmsa-webhook.fullname" .) "^[a-z]([a-z0-9-]*[a-z0-9])?$" "a DNS label, which starts with a letter and has no dots: set fullnameOverride")
  (list "namespaceOverride" $v.namespaceOverride $namespace "a namespace's name")
  (list "certificates.secretName" $v.certificates.secretName $object "a Secret's name")
  (list "clientCa.configMapName" $v.clientCa.configMapName $object "a ConfigMap's name")
  (list "clientCa.key" $v.clientCa.key "^[.]?[A-Za-z0-9_-][A-Za-z0-9._-]{0,251}$" "a ConfigMap's key, such as ca.crt")
  (list "tickets.broker.caConfigMap" $v.tickets.broker.caConfigMap $object "a ConfigMap's name")
  (list "serviceAccount.name" $v.serviceAccount.name $object "a service account's name")
  (list "credential.domainJoinConfig.dnsName" $join.dnsName $dnsDomain "a domain's DNS name, such as corp.example.com")
  (list "credential.domainJoinConfig.dnsTreeName" $join.dnsTreeName $dnsDomain "a domain's DNS name, such as example.com")
  (list "credential.domainJoinConfig.guid" $join.guid "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$" "a GUID without braces")
  (list "credential.domainJoinConfig.machineAccountName" $join.machineAccountName "^[A-Za-z0-9]([A-Za-z0-9._-]{0,13}[A-Za-z0-9])?$" "an account's name: at most 15 characters, without the trailing $ and without a domain")
  (list "credential.domainJoinConfig.netBiosName" $join.netBiosName "^[^\\\\/:*?\"<>|\\s]+$" "a domain's NetBIOS name, such as CORP")
  (list "credential.domainJoinConfig.sid" $join.sid (printf "^S-1-5-21(-%s){3}$" $number) "a domain's SID: S-1-5-21 and three numbers (an account's has four)")
  (list "webhooks.optOutLabel" $v.webhooks.optOutLabel "^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$" "a label's key, such as windows.k8s.io/disabled")
  (list "logLevel" $v.logLevel ("^(?i)(error|warn|warning|info|debug|trace|panic|fatal|([a-z0-9_:]+(=L)?,)*[a-z0-9_:]+=L(,[a-z0-9_:]+(=L)?)*)$" | replace "L" $level) "a level: error, warn, info, debug or trace")
  (list "authorizationCacheTtl" $v.authorizationCacheTtl "^([0-9]{1,9}(\\.[0-9]+)?(h|m|s|ms|us|µs|ns))+$" "a duration with units, such as 10s or 1m30s")
  (list "tickets.checkInterval" $v.tickets.checkInterval "^([0-9]{1,9}(\\.[0-9]+)?(h|m|s))+$" "a duration from 1s, such as 5m")
-}}
{{- range $v.webhooks.warnNamespaces -}}
{{- $forms = append $forms (list "webhooks.warnNamespaces" . $namespace "a namespace's name") -}}
{{- end -}}
{{- include "gmsa-webhook.refuseForms" $forms -}}
{{- end -}}

{{/* Image, ports and the container's own settings. */}}
{{- define "gmsa-webhook.checkPod" -}}
{{- $v := .Values -}}
{{- $fix := printf "add --set image.repository=REPOSITORY --set image.tag=%s, or change both in your values file" .Chart.AppVersion -}}
{{- $isGoTag := and (not $v.image.digest) (regexMatch "^v0\\.([1-9]|1[0-3])\\.[0-9]+$" (toString $v.image.tag)) -}}
{{- $port := int $v.containerPort -}}
{{- $isShort := and (lt (int $v.terminationGracePeriodSeconds) 20) (not (regexMatch "--(shutdown-delay|drain-timeout)" (join " " $v.extraArgs))) -}}
{{- $refused := list
  (list (hasSuffix "k8s-gmsa-webhook" $v.image.repository) (printf "image.repository %q is the Go webhook's, and this chart runs another program: %s" $v.image.repository $fix))
  (list $isGoTag (printf "image.tag %q is the Go webhook's, and this chart runs another program: %s" (toString $v.image.tag) $fix))
  (list (eq $port (int $v.adminPort)) (printf "containerPort and adminPort are both %d: they need different ports" $port))
  (list (and (eq (toString $v.dnsPolicy) "None") (not $v.dnsConfig.nameservers)) "dnsPolicy is None, and dnsConfig.nameservers is empty: name a server there, or leave dnsPolicy blank")
  (list $isShort (printf "terminationGracePeriodSeconds (%d) is less than the 20 seconds that the webhook takes to stop: 5 until its endpoints are forgotten, 15 for what is in flight" (int $v.terminationGracePeriodSeconds)))
-}}
{{- range $name, $port := dict "containerPort" $port "adminPort" (int $v.adminPort) -}}
{{- $refused = append $refused (list (and $v.hostNetwork (eq $port 10250)) (printf "%s is 10250, which is the kubelet's with hostNetwork: set another one, such as %s=8443" $name $name)) -}}
{{- $refused = append $refused (list (and $v.hostNetwork (lt $port 1024)) (printf "%s is %d, which takes root with hostNetwork, and the webhook is not root: set one from 1024, such as %s=8443" $name $port $name)) -}}
{{- end -}}
{{- $own := dict "HTTPS_PORT" "containerPort" "ADMIN_LISTEN" "adminPort" "LOG_LEVEL" "logLevel" "LOG_FORMAT" "logFormat" "RANDOM_HOSTNAME" "randomHostname"
  "TLS_CRT" "certificates.secretName" "TLS_KEY" "certificates.secretName" "QPS" "qps" "BURST" "burst" "ENFORCEMENT" "webhooks.enforcement" -}}
{{- range $v.extraEnv -}}
{{- $refused = append $refused (list (hasKey $own .name) (printf "extraEnv sets %s, which the chart sets from %s: use that value" .name (get $own .name))) -}}
{{- end -}}
{{- include "gmsa-webhook.refuse" $refused -}}
{{- end -}}

{{/* Pods that are evicted, scaled and replaced one after the other. */}}
{{- define "gmsa-webhook.checkReplicas" -}}
{{- $scaling := .Values.autoscaling -}}
{{- $resources := include "gmsa-webhook.resources" .Values | fromYaml -}}
{{- $replicas := int (ternary $scaling.minReplicas .Values.replicaCount $scaling.enabled) -}}
{{- $key := ternary "autoscaling.minReplicas" "replicaCount" $scaling.enabled -}}
{{- $update := .Values.updateStrategy.rollingUpdate | default dict -}}
{{- $never := regexMatch "^0%?$" (get $update "maxSurge" | toString) -}}
{{- $away := get $update "maxUnavailable" | toString -}}
{{- $endsAll := or (eq $away "100%") (and (regexMatch "^[1-9][0-9]*$" $away) (gt $replicas 0) (ge (int $away) $replicas)) -}}
{{- $budget := .Values.podDisruptionBudget -}}
{{- $hasLeast := not (kindIs "invalid" $budget.minAvailable) -}}
{{- $least := toString $budget.minAvailable -}}
{{- /* The API server rounds a percentage up. */ -}}
{{- $kept := trimSuffix "%" $least | int -}}
{{- if hasSuffix "%" $least }}{{ $kept = div (add (mul $kept $replicas) 99) 100 }}{{ end -}}
{{- $keepsAll := and $hasLeast (gt $replicas 0) (ge (int $kept) $replicas) -}}
{{- /* Old values files have maxUnavailable: 0 beside minAvailable: minAvailable then decides. */ -}}
{{- $neverAway := regexMatch "^0%?$" (toString $budget.maxUnavailable) -}}
{{- include "gmsa-webhook.refuse" (list
  (list (and $scaling.enabled (gt (int $scaling.minReplicas) (int $scaling.maxReplicas))) (printf "autoscaling.minReplicas (%d) is greater than autoscaling.maxReplicas (%d)" (int $scaling.minReplicas) (int $scaling.maxReplicas)))
  (list (and $scaling.enabled (not (dig "requests" "cpu" "" $resources)) (not (dig "limits" "cpu" "" $resources))) "autoscaling.enabled needs resources.requests.cpu, because it scales by the share of it that is used")
  (list (eq (toString .Values.updateStrategy.type) "Recreate") "updateStrategy.type=Recreate ends all pods before new ones start, so pods that use GMSA would be refused during every upgrade: leave updateStrategy blank")
  (list (and $never (regexMatch "^0%?$" $away)) "updateStrategy.rollingUpdate has maxSurge and maxUnavailable of 0, so no pod could ever be replaced: set one of them higher")
  (list (and $never (eq $replicas 1)) (printf "updateStrategy.rollingUpdate.maxSurge of 0 lets an upgrade end the only pod (%s) before a new one starts, so pods that use GMSA would be refused meanwhile: leave it blank, or run 2" $key))
  (list $endsAll (printf "updateStrategy.rollingUpdate.maxUnavailable (%s) lets an upgrade end all of the %d pods at once, so pods that use GMSA would be refused meanwhile: set it lower" $away $replicas))
  (list (and $budget.enabled $hasLeast (not (kindIs "invalid" $budget.maxUnavailable)) (not $neverAway)) "podDisruptionBudget.minAvailable and podDisruptionBudget.maxUnavailable are both set: leave one of them blank")
  (list (and $budget.enabled $keepsAll) (printf "podDisruptionBudget.minAvailable (%s) leaves none of the %d pods (%s) to evict, so no node that runs one can be drained: set it lower, or leave it blank" $least $replicas $key))
  (list (and $budget.enabled $neverAway (not $hasLeast)) (printf "podDisruptionBudget.maxUnavailable (%s) lets no pod be evicted, so no node that runs one can be drained: set it higher, or leave it blank" (toString $budget.maxUnavailable)))
) -}}
{{- end -}}

{{/* Webhooks and the guard. */}}
{{- define "gmsa-webhook.checkWebhooks" -}}
{{- $webhooks := .Values.webhooks -}}
{{- $guard := .Values.guard -}}
{{- $kubernetes := .Capabilities.KubeVersion.Version -}}
{{- $hasConditions := include "gmsa-webhook.hasMatchConditions" . -}}
{{- $denies := and (or $guard.enabled .Values.staticPolicies.enabled) (has "Deny" $guard.validationActions) -}}
{{- $strict := $webhooks.credentialSpecs.strict -}}
{{- include "gmsa-webhook.refuse" (list
  (list (and $guard.enabled (not (include "gmsa-webhook.hasGuard" .))) (printf "guard.enabled needs Kubernetes 1.30 or later, and this is %s: set guard.enabled=false" $kubernetes))
  (list (and (has "Deny" $guard.validationActions) (has "Warn" $guard.validationActions)) "guard.validationActions has Deny and Warn, which Kubernetes does not take together: a denial is a warning already")
  (list (and $denies (eq $webhooks.enforcement "Warn")) (printf "webhooks.enforcement=Warn admits what the guard denies: set guard.validationActions={Warn,Audit} too, or %s=false" (ternary "guard.enabled" "staticPolicies.enabled" $guard.enabled)))
  (list (and $webhooks.warnNamespaces (eq $webhooks.enforcement "Warn")) "webhooks.warnNamespaces has no effect with webhooks.enforcement=Warn, which warns in every namespace: set webhooks.enforcement=Enforce, or remove webhooks.warnNamespaces")
  (list (and $hasConditions (not $webhooks.first.enabled) (not $webhooks.last.enabled)) "webhooks.first.enabled and webhooks.last.enabled are both false: no pod would get its contents")
  (list (and $strict (not $webhooks.credentialSpecs.enabled)) "webhooks.credentialSpecs.strict needs webhooks.credentialSpecs.enabled=true")
  (list (and $strict .Values.credential.enabled (not $hasConditions)) (printf "webhooks.credentialSpecs.strict and credential.enabled go together from Kubernetes 1.28 on, and this is %s: Helm creates the credential spec before the webhook can judge it. Create the credential spec yourself, or set webhooks.credentialSpecs.strict=false" $kubernetes))
) -}}
{{- end -}}

{{/* Tickets for Linux pods. */}}
{{- define "gmsa-webhook.checkTickets" -}}
{{- if .Values.tickets.enabled -}}
{{- $broker := .Values.tickets.broker -}}
{{- $kubernetes := .Capabilities.KubeVersion.Version -}}
{{- $address := "^(B\\.B\\.B\\.B|\\[[0-9A-Fa-f:]+\\]):([1-9][0-9]{0,3}|[1-5][0-9]{4}|6([0-4][0-9]{3}|5([0-4][0-9]{2}|5([0-2][0-9]|3[0-5]))))$" | replace "B" "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])" -}}
{{- include "gmsa-webhook.refuse" (list
  (list (semverCompare "<1.29-0" $kubernetes) (printf "tickets.enabled needs Kubernetes 1.29 or later, and this is %s: set tickets.enabled=false" $kubernetes))
  (list (not (regexMatch "^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$" $broker.name)) (printf "tickets.broker.name %q is not a DNS name, such as gmsa-tickets.gmsa-tickets.svc" $broker.name))
  (list (not (regexMatch $address $broker.address)) (printf "tickets.broker.address %q is not an IP address and a port, such as 10.96.0.20:443: take them from kubectl get service -n gmsa-tickets gmsa-tickets" $broker.address))
  (list (eq (empty $broker.ca) (empty $broker.caConfigMap)) "tickets.broker: set ca or caConfigMap, and only one of them")
  (list (and $broker.ca (not (contains "-----BEGIN CERTIFICATE-----" $broker.ca))) "tickets.broker.ca holds no certificate: it must be CA certificates in PEM")
  (list (contains "PRIVATE KEY" $broker.ca) "tickets.broker.ca holds a private key: give the certificates alone")
) -}}
{{- end -}}
{{- end -}}

{{/* Administrators who may change what static policies protect: named users and groups, never groups that hold everybody. */}}
{{- define "gmsa-webhook.checkAdmins" -}}
{{- $static := .Values.staticPolicies -}}
{{- include "gmsa-webhook.refuse" (list (list (kindIs "slice" $static.admins) "staticPolicies.admins is a list, in which a user with the name of a group counts as the group: name users in staticPolicies.admins.users, and groups in staticPolicies.admins.groups")) -}}
{{- $admins := concat $static.admins.users $static.admins.groups -}}
{{- $refused := list (list (and $static.enabled (not $admins)) "staticPolicies.admins is empty, so nobody could upgrade or uninstall this release: name the users and groups that may, such as staticPolicies.admins.groups={kubeadm:cluster-admins}") -}}
{{- range $static.admins.users -}}
{{- $isGroup := or (has . (list "kubeadm:cluster-admins" "system:masters")) (hasPrefix "system:serviceaccounts" .) -}}
{{- $refused = append $refused (list $isGroup (printf "staticPolicies.admins.users has %q, which is a group: name it in staticPolicies.admins.groups" .)) -}}
{{- end -}}
{{- range $static.admins.groups -}}
{{- $refused = append $refused (list (hasPrefix "system:serviceaccount:" .) (printf "staticPolicies.admins.groups has %q, which is a user: name it in staticPolicies.admins.users" .)) -}}
{{- end -}}
{{- $namespace := include "gmsa-webhook.namespace" . -}}
{{- range list "system:anonymous" "system:authenticated" "system:serviceaccounts" "system:unauthenticated" (printf "system:serviceaccount:%s:%s" $namespace (include "gmsa-webhook.serviceAccount" .)) (printf "system:serviceaccounts:%s" $namespace) -}}
{{- $refused = append $refused (list (and $static.enabled (has . $admins)) (printf "staticPolicies.admins has %q, which is what the policies protect against: name the users and groups that upgrade this release" .)) -}}
{{- end -}}
{{- include "gmsa-webhook.refuse" $refused -}}
{{- end -}}

{{/* Metrics that Prometheus would count twice, and an alert that would never fire: the histogram ends at 10 seconds, and reviews end at the time that the API server waits. */}}
{{- define "gmsa-webhook.checkMonitoring" -}}
{{- $slow := .Values.prometheusRule.thresholds.slowSeconds -}}
{{- $longest := min 10 (int .Values.webhooks.timeoutSeconds) -}}
{{- $alerts := and .Values.prometheusRule.enabled (ne (dig "GmsaWebhookSlow" "enabled" true .Values.prometheusRule.alerts | toString) "false") -}}
{{- include "gmsa-webhook.refuse" (list
  (list (and .Values.serviceMonitor.enabled .Values.podMonitor.enabled) "serviceMonitor.enabled and podMonitor.enabled are both true, so every metric would be read and counted twice: set one of them to false")
  (list (and $alerts (ge (float64 $slow) (float64 $longest))) (printf "prometheusRule.thresholds.slowSeconds (%v) is never exceeded: set it below %d, as the API server waits for webhooks.timeoutSeconds (%d), and 10 seconds are the most that are measured" $slow $longest (int .Values.webhooks.timeoutSeconds)))
) -}}
{{- end -}}

{{/* The source of the certificate: values that do not go together, then changes of the installed source. */}}
{{- define "gmsa-webhook.checkCertificates" -}}
{{- $mode := include "gmsa-webhook.mode" . -}}
{{- $certificates := .Values.certificates -}}
{{- $isDefault := not (or $certificates.mode (kindIs "bool" $certificates.certManager.enabled)) -}}
{{- $publishes := include "gmsa-webhook.publishesCa" . -}}
{{- $bundle := include "gmsa-webhook.caBundle" . -}}
{{- include "gmsa-webhook.refuse" (list
  (list (and .Values.clientCa.names (not .Values.clientCa.configMapName)) "clientCa.names has no effect without clientCa.configMapName, and every client could call the webhook: set clientCa.configMapName, or remove clientCa.names")
  (list (and $isDefault $certificates.secretName) "certificates.secretName is set, but without certificates.mode the webhook makes its own certificate: set certificates.mode=secret, or remove certificates.secretName")
  (list (and $isDefault $certificates.certManager.issuerRef) "certificates.certManager.issuerRef is set, but without certificates.mode the webhook makes its own certificate: set certificates.mode=cert-manager, or remove certificates.certManager.issuerRef")
  (list (and (eq $mode "self-managed") $certificates.caBundle) "certificates.caBundle is set, but in mode self-managed the webhook makes its own CA: set certificates.mode=secret to serve your certificate, or remove certificates.caBundle")
  (list (and $certificates.certManager.issuerRef (not $certificates.certManager.issuerRef.name)) "certificates.certManager.issuerRef has no name: name the Issuer or ClusterIssuer")
  (list (and (ne $mode "self-managed") (eq $certificates.secretName (include "gmsa-webhook.ownSecret" .))) (printf "certificates.secretName %q is the Secret of mode self-managed: choose another one" $certificates.secretName))
  (list (and $certificates.formerCaBundle (not $publishes)) "certificates.formerCaBundle is for modes in which the webhook publishes its CA: remove it, or the value that says otherwise (certificates.caBundle, certificates.certManager.injectCa)")
  (list (and $bundle (not (contains "-----BEGIN CERTIFICATE-----" (b64dec $bundle)))) (printf "certificates.%s holds no certificate: it must be a CA certificate in PEM, or base64 of that" (ternary "formerCaBundle" "caBundle" (eq $publishes "true"))))
) -}}
{{- include "gmsa-webhook.checkSource" . -}}
{{- end -}}

{{/*
Changes of the certificate's source that would leave the API server without trust in the old pods, or in the new ones: the Deployment changes before the webhook
configurations do, and pods are replaced after both. docs/certificates.md has the table of all changes. Also Secrets that no pod could start with, or that the API
server would not trust.
*/}}
{{- define "gmsa-webhook.checkSource" -}}
{{- $certificates := .Values.certificates -}}
{{- $mode := include "gmsa-webhook.mode" . -}}
{{- $publishes := include "gmsa-webhook.publishesCa" . | eq "true" -}}
{{- $fromValues := and (eq $mode "secret") (not $publishes) -}}
{{- $injects := and (eq $mode "cert-manager") (not $publishes) -}}
{{- $name := include "gmsa-webhook.certificateSecret" . -}}
{{- $data := include "gmsa-webhook.storedCertificate" . | fromYaml -}}
{{- $held := include "gmsa-webhook.authorities" (get $data "ca.crt") | fromJsonArray -}}
{{- $new := ternary (include "gmsa-webhook.authorities" (include "gmsa-webhook.caBundle" .) | fromJsonArray) list $fromValues -}}
{{- $installed := include "gmsa-webhook.installedSource" . | fromYaml -}}
{{- $source := $installed.source | default "" -}}
{{- $isSame := eq ($installed.secret | default "") $name -}}
{{- $old := include "gmsa-webhook.authorities" ($installed.caBundle | default "") | fromJsonArray -}}
{{- $kept := include "gmsa-webhook.common" (dict "of" $old "in" $new) | int -}}
{{- /* An unchanged source works, whatever its CAs look like: the CA of ca.crt may be one that the other has signed. */ -}}
{{- $isUnchanged := and (eq $source "values") $isSame (eq $kept (len $old)) (eq $kept (len $new)) -}}
{{- $issuer := "" -}}
{{- if and $injects (eq $source "injected") }}{{ $issuer = include "gmsa-webhook.installedIssuer" . }}{{ end -}}
{{- $steps := "docs/certificates.md lists the steps" -}}
{{- $settle := printf "certificates: old pods are still being replaced, and the CA that they are trusted by would go: wait for kubectl -n %s rollout status deployment/%s, then upgrade again" (include "gmsa-webhook.namespace" .) (include "gmsa-webhook.fullname" .) -}}
{{- $lacks := printf "certificates.secretName: the Secret %s has no %%s, so no new pod would start: add it" $name -}}
{{- include "gmsa-webhook.refuse" (list
  (list (and $data (not (hasKey $data "tls.crt"))) (printf $lacks "tls.crt"))
  (list (and $data (not (hasKey $data "tls.key"))) (printf $lacks "tls.key"))
  (list (and $data $publishes (not (hasKey $data "ca.crt"))) (printf "%s, or set certificates.caBundle" (printf $lacks "ca.crt")))
  (list (and $new $held (not $isUnchanged) (eq (include "gmsa-webhook.common" (dict "of" $held "in" $new)) "0")) (printf "certificates.caBundle has none of the CAs that ca.crt of the Secret %s has, so the API server would trust no pod: add them to certificates.caBundle, or remove it, and the webhook publishes ca.crt; %s" $name $steps))
  (list (and $publishes .Release.IsUpgrade (eq $source "values") (not $certificates.formerCaBundle)) (printf "certificates.caBundle is removed, so the API server trusts no pod until the new ones are ready, and pods that use GMSA would be refused: set certificates.formerCaBundle to what certificates.caBundle was, and leave it out of the next upgrade; %s" $steps))
  (list (and $publishes $source (ne $source "values") $certificates.formerCaBundle) (printf "certificates.formerCaBundle would replace what the webhook has published since: it is for the one upgrade that takes certificates.caBundle away, leave it out now; %s" $steps))
  (list (and $fromValues $source (ne $source "values") (not (and $isSame (eq $source "published")))) (printf "certificates.caBundle would have the API server trust the new pods alone, and refuse pods that use GMSA while old ones answer: upgrade with certificates.mode=secret and no certificates.caBundle first, wait until all pods are replaced, then set certificates.caBundle; %s" $steps))
  (list (and $fromValues (eq $source "values") (lt $kept (len $old)) (not $isSame)) (printf "certificates.caBundle no longer has the CA of the Secret %s, whose certificate the old pods serve until they are replaced: keep that CA in certificates.caBundle beside the new one, wait until all pods are replaced, then leave it out; %s" $installed.secret $steps))
  (list (and $fromValues (eq $source "values") $old (eq $kept 0)) (printf "certificates.caBundle has none of the CAs that it had, so pods that use GMSA would be refused until every pod serves a certificate of the new one: set certificates.caBundle to both first, put the new certificate into the Secret %s, then leave the old CA out; %s" $name $steps))
  (list (and $fromValues (or (eq $source "published") (lt $kept (len $old))) (not $installed.settled)) $settle)
  (list (and $injects $source (ne $source "injected") (not (and $isSame (eq $source "published")))) (printf "certificates.mode=cert-manager would replace the caBundle while old pods answer, so pods that use GMSA would be refused: add certificates.certManager.injectCa=false, wait until all pods are replaced, then leave it out of the next upgrade; %s" $steps))
  (list (and $injects (eq $source "published") (not $installed.settled)) $settle)
  (list (and $issuer (ne $issuer (include "gmsa-webhook.issuer" .))) (printf "certificates.certManager.issuerRef changes, and cert-manager would replace the caBundle while pods still serve the old certificate, so pods that use GMSA would be refused: add certificates.certManager.injectCa=false and keep the issuer, wait until all pods are replaced, change the issuer in a second upgrade, and leave injectCa out of a third; %s" $steps))
) -}}
{{- end -}}

{{/* Name, namespace and service account: they would change before the old pods are replaced. */}}
{{- define "gmsa-webhook.checkIdentity" -}}
{{- $new := dict "name" (include "gmsa-webhook.fullname" .) "namespace" (include "gmsa-webhook.namespace" .) "account" (include "gmsa-webhook.serviceAccount" .) -}}
{{- $old := ternary (include "gmsa-webhook.installedIdentity" . | fromYaml) dict .Release.IsUpgrade -}}
{{- $instead := "so pods that use GMSA would be refused until the new ones are ready: install a second release under another name with the new value, then uninstall this one" -}}
{{- range $key, $words := dict
  "name" "fullnameOverride, nameOverride: the name of all objects changes from %s to %s, and no pod runs yet under the new one, %s"
  "namespace" "namespaceOverride: the namespace changes from %s to %s, where no pod runs yet, %s"
  "account" "serviceAccount: the service account changes from %s to %s, and the old pods would lose their rights, %s"
-}}
{{- $was := get $old $key -}}
{{- include "gmsa-webhook.refuse" (list (list (and $was (ne $was (get $new $key))) (printf $words $was (get $new $key) $instead))) -}}
{{- end -}}
{{- end -}}

{{/* Namespaces besides the release's: an install into one that does not exist, or is being deleted, would end in the middle. */}}
{{- define "gmsa-webhook.checkNamespaces" -}}
{{- $named := dict "namespaceOverride" .Values.namespaceOverride -}}
{{- range $name := list "serviceMonitor" "podMonitor" "prometheusRule" "dashboard" -}}
{{- $object := get $.Values $name -}}
{{- if $object.enabled }}{{ $_ := set $named (printf "%s.namespace" $name) $object.namespace }}{{ end -}}
{{- end -}}
{{- range $value, $namespace := $named -}}
{{- if and $namespace (ne $namespace $.Release.Namespace) (include "gmsa-webhook.hasCluster" $) -}}
{{- $phase := include "gmsa-webhook.installedNamespace" $namespace -}}
{{- include "gmsa-webhook.refuse" (list
  (list (not $phase) (printf "%s: there is no namespace %s: create it first" $value $namespace))
  (list (eq $phase "Terminating") (printf "%s: the namespace %s is being deleted: wait until it is gone, and create it again" $value $namespace))
) -}}
{{- end -}}
{{- end -}}
{{- end -}}
