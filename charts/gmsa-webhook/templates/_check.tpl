{{/*
What the schema cannot say: values that do not go together, and forms of text in words instead of patterns. Every failure names
the values and the way out.
*/}}
{{- define "gmsa-webhook.check" -}}
{{- include "gmsa-webhook.checkForms" . -}}
{{- include "gmsa-webhook.checkImage" . -}}
{{- include "gmsa-webhook.checkPorts" . -}}
{{- include "gmsa-webhook.checkCertificates" . -}}
{{- include "gmsa-webhook.checkIdentity" . -}}
{{- include "gmsa-webhook.checkNamespaces" . -}}
{{- include "gmsa-webhook.checkReplicas" . -}}
{{- include "gmsa-webhook.checkPod" . -}}
{{- include "gmsa-webhook.checkWebhooks" . -}}
{{- include "gmsa-webhook.checkMonitoring" . -}}
{{- end -}}

{{/* What Prometheus would count twice or not take, and changes of alerts that there are none of. */}}
{{- define "gmsa-webhook.checkMonitoring" -}}
{{- if and .Values.serviceMonitor.enabled .Values.podMonitor.enabled -}}
{{- fail "serviceMonitor.enabled and podMonitor.enabled are both true, so every metric would be read and counted twice: set one of them to false" -}}
{{- end -}}
{{- range $name := list "serviceMonitor" "podMonitor" -}}
{{- $monitor := get $.Values $name -}}
{{- if gt (include "gmsa-webhook.milliseconds" $monitor.scrapeTimeout | int) (include "gmsa-webhook.milliseconds" $monitor.interval | int) -}}
{{- fail (printf "%s.scrapeTimeout (%s) is longer than %s.interval (%s), which Prometheus does not take: set it lower, or leave it blank" $name $monitor.scrapeTimeout $name $monitor.interval) -}}
{{- end -}}
{{- end -}}
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

{{/* A duration such as 1m30s in milliseconds; 0 for a blank one. */}}
{{- define "gmsa-webhook.milliseconds" -}}
{{- $units := dict "h" 3600000 "m" 60000 "s" 1000 "ms" 1 -}}
{{- $sum := 0 -}}
{{- range $part := regexFindAll "[0-9]+(ms|h|m|s)" (. | default "") -1 -}}
{{- $sum = add $sum (mul (regexFind "^[0-9]+" $part | int) (get $units (regexFind "[a-z]+$" $part))) -}}
{{- end -}}
{{ $sum }}
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
{{- $replicas := int (ternary $scaling.minReplicas .Values.replicaCount $scaling.enabled) -}}
{{- with .Values.updateStrategy -}}
{{- $update := .rollingUpdate | default dict -}}
{{- $surge := get $update "maxSurge" | toString | default "25%" -}}
{{- $away := get $update "maxUnavailable" | toString -}}
{{- if eq (toString .type) "Recreate" -}}
{{- fail "updateStrategy.type=Recreate ends all pods before new ones start, so pods that use GMSA would be refused during every upgrade: leave updateStrategy blank" -}}
{{- end -}}
{{- if and (regexMatch "^0%?$" $surge) (regexMatch "^0%?$" $away) -}}
{{- fail "updateStrategy.rollingUpdate has maxSurge and maxUnavailable of 0, so no pod could ever be replaced: set one of them higher" -}}
{{- end -}}
{{- if or (eq $away "100%") (and (regexMatch "^[1-9][0-9]*$" $away) (gt $replicas 0) (ge (int $away) $replicas)) -}}
{{- fail (printf "updateStrategy.rollingUpdate.maxUnavailable (%s) lets an upgrade end all of the %d pods at once, so pods that use GMSA would be refused meanwhile: set it lower" $away $replicas) -}}
{{- end -}}
{{- end -}}
{{- with .Values.podDisruptionBudget -}}
{{- $neverUnavailable := regexMatch "^0%?$" (toString .maxUnavailable) -}}
{{- if and .enabled (not (kindIs "invalid" .minAvailable)) (not (kindIs "invalid" .maxUnavailable)) (not $neverUnavailable) -}}
{{- fail "podDisruptionBudget.minAvailable and podDisruptionBudget.maxUnavailable are both set: leave one of them blank" -}}
{{- end -}}
{{- $key := ternary "autoscaling.minReplicas" "replicaCount" $scaling.enabled -}}
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
{{- if not (or (kindIs "string" $variable.value) (kindIs "invalid" $variable.value)) -}}
{{- fail (printf "extraEnv: the value of %s is a %s, and Kubernetes takes text alone: write it in quotes, such as %q" $variable.name (ternary "boolean" (ternary "list or an object" "number" (or (kindIs "slice" $variable.value) (kindIs "map" $variable.value))) (kindIs "bool" $variable.value)) (toString $variable.value)) -}}
{{- end -}}
{{- if and $variable.value $variable.valueFrom -}}
{{- fail (printf "extraEnv sets %s by value and by valueFrom: remove one of them" $variable.name) -}}
{{- end -}}
{{- $names = append $names $variable.name -}}
{{- end -}}
{{- range $kind := list "requests" "limits" -}}
{{- $memory := dig $kind "memory" "" $.Values.resources | toString -}}
{{- if and (ne $memory "0") (regexMatch "^[0-9.]+m?$" $memory) (lt (len $memory) 8) -}}
{{- fail (printf "resources.%s.memory %q is less than a mebibyte, as m means thousandths of a byte and a number bytes: write %sMi" $kind $memory (trimSuffix "m" $memory)) -}}
{{- end -}}
{{- end -}}
{{- $resources := include "gmsa-webhook.resources" . | fromYaml -}}
{{- range $name, $requested := $resources.requests -}}
{{- $limit := dig "limits" $name "" $resources -}}
{{- if and (ne (toString $limit) "") (gt (include "gmsa-webhook.quantity" $requested | float64) (include "gmsa-webhook.quantity" $limit | float64)) -}}
{{- fail (printf "resources.requests.%s (%s) is more than resources.limits.%s (%s): set both" $name (toString $requested) $name (toString $limit)) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.securityContext.privileged (not (dig "allowPrivilegeEscalation" true .Values.securityContext)) -}}
{{- fail "securityContext.privileged and securityContext.allowPrivilegeEscalation=false contradict each other: remove securityContext.privileged, which the webhook does not need" -}}
{{- end -}}
{{- if and (eq .Values.dnsPolicy "None") (not .Values.dnsConfig.nameservers) -}}
{{- fail "dnsPolicy=None needs dnsConfig.nameservers: name them, or leave dnsPolicy blank" -}}
{{- end -}}
{{- $volumes := list "tls" "client-ca" -}}
{{- range .Values.extraVolumes -}}
{{- if has .name $volumes -}}
{{- fail (printf "extraVolumes has %s, which the chart has, or which is there twice: choose another name" .name) -}}
{{- end -}}
{{- if ne (len .) 2 -}}
{{- fail (printf "extraVolumes: %s needs one source, such as configMap, and has %d" .name (sub (len .) 1)) -}}
{{- end -}}
{{- $volumes = append $volumes .name -}}
{{- end -}}
{{- $paths := list "/tls" "/client-ca" -}}
{{- range .Values.extraVolumeMounts -}}
{{- if not (has .name $volumes) -}}
{{- fail (printf "extraVolumeMounts has %s, which is none of extraVolumes" .name) -}}
{{- end -}}
{{- if has .mountPath $paths -}}
{{- fail (printf "extraVolumeMounts mounts %s at %s, where the chart or another entry mounts something: choose another mountPath" .name .mountPath) -}}
{{- end -}}
{{- $paths = append $paths .mountPath -}}
{{- end -}}
{{- range .Values.tolerations -}}
{{- $operator := .operator | default "Equal" -}}
{{- if and (eq $operator "Exists") .value -}}
{{- fail (printf "tolerations: operator Exists takes no value, and the one of %s has %q: remove the value, or set operator: Equal" (.key | default "every key") .value) -}}
{{- end -}}
{{- if and (ne $operator "Exists") (not .key) -}}
{{- fail "tolerations has one without a key: name the taint's key, or set operator: Exists to tolerate every taint" -}}
{{- end -}}
{{- if and (hasKey . "tolerationSeconds") (ne (.effect | default "") "NoExecute") -}}
{{- fail (printf "tolerations: tolerationSeconds of %s is for effect: NoExecute alone" (.key | default "every key")) -}}
{{- end -}}
{{- end -}}
{{- $spread := list -}}
{{- range .Values.topologySpreadConstraints -}}
{{- $is := printf "%s, %s" .topologyKey .whenUnsatisfiable -}}
{{- if has $is $spread -}}
{{- fail (printf "topologySpreadConstraints has two of %s: remove one" $is) -}}
{{- end -}}
{{- if and .minDomains (ne .whenUnsatisfiable "DoNotSchedule") -}}
{{- fail (printf "topologySpreadConstraints: minDomains of %s is for whenUnsatisfiable: DoNotSchedule alone" .topologyKey) -}}
{{- end -}}
{{- $spread = append $spread $is -}}
{{- end -}}
{{- range $name, $value := dict "affinity" .Values.affinity "topologySpreadConstraints" .Values.topologySpreadConstraints "networkPolicy.metricsFrom" .Values.networkPolicy.metricsFrom
  "networkPolicy.extraEgress" .Values.networkPolicy.extraEgress "webhooks.namespaceSelector" .Values.webhooks.namespaceSelector "webhooks.objectSelector" .Values.webhooks.objectSelector -}}
{{- include "gmsa-webhook.checkExpressions" (dict "name" $name "of" $value) -}}
{{- end -}}
{{- range $kind, $affinity := $.Values.affinity -}}
{{- if hasPrefix "pod" $kind -}}
{{- range $term := concat (get $affinity "requiredDuringSchedulingIgnoredDuringExecution" | default list) (get $affinity "preferredDuringSchedulingIgnoredDuringExecution" | default list) -}}
{{- if not (get (get $term "podAffinityTerm" | default $term) "labelSelector") -}}
{{- fail (printf "affinity.%s has a term without labelSelector, which is about no pod: add labelSelector: {matchLabels: {app: %s}}" $kind (include "gmsa-webhook.fullname" $)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $sleep := dig "preStop" "sleep" "seconds" 0 .Values.lifecycle -}}
{{- if ge (int $sleep) (int .Values.terminationGracePeriodSeconds) -}}
{{- fail (printf "lifecycle.preStop.sleep.seconds (%d) must be less than terminationGracePeriodSeconds (%d)" (int $sleep) (int .Values.terminationGracePeriodSeconds)) -}}
{{- end -}}
{{- range .Values.networkPolicy.extraEgress -}}
{{- range .ports -}}
{{- if and .endPort (or (kindIs "string" .port) (gt (int .port) (int .endPort)) (not .port)) -}}
{{- fail (printf "networkPolicy.extraEgress: endPort (%d) needs a port that is a number and not greater" (int .endPort)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and (gt (len .Values.service.ipFamilies) 1) (eq (toString .Values.service.ipFamilyPolicy) "SingleStack") -}}
{{- fail "service.ipFamilyPolicy=SingleStack takes one of service.ipFamilies: remove the others, or set PreferDualStack" -}}
{{- end -}}
{{- $drain := 20 -}}
{{- if and (lt (int .Values.terminationGracePeriodSeconds) $drain) (not (regexMatch "--(shutdown-delay|drain-timeout)" (join " " .Values.extraArgs))) -}}
{{- fail (printf "terminationGracePeriodSeconds (%d) is less than the %d seconds that the webhook takes to stop: 5 until its endpoints are forgotten, 15 for what is in flight" (int .Values.terminationGracePeriodSeconds) $drain) -}}
{{- end -}}
{{- end -}}

{{/* Selectors' expressions, of dict "name" VALUE "of" what it holds, at every depth. */}}
{{- define "gmsa-webhook.checkExpressions" -}}
{{- $name := .name -}}
{{- if kindIs "slice" .of -}}
{{- range .of }}{{ include "gmsa-webhook.checkExpressions" (dict "name" $name "of" .) }}{{ end -}}
{{- else if kindIs "map" .of -}}
{{- if and (hasKey .of "key") (hasKey .of "operator") -}}
{{- $takesNone := hasSuffix "Exist" (trimSuffix "s" .of.operator) -}}
{{- if ne $takesNone (empty .of.values) -}}
{{- fail (printf "%s: operator %s of %s takes %s" $name .of.operator .of.key (ternary "no values: remove them, or use In" "values: add some, or use Exists" $takesNone)) -}}
{{- end -}}
{{- end -}}
{{- range .of }}{{ include "gmsa-webhook.checkExpressions" (dict "name" $name "of" .) }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* A quantity as a number, for comparisons. */}}
{{- define "gmsa-webhook.quantity" -}}
{{- $units := dict "n" 1e-9 "u" 1e-6 "m" 0.001 "" 1.0 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18 "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 "Pi" 1125899906842624.0 "Ei" 1152921504606846976.0 -}}
{{- $unit := regexFind "[numkMGTPE]i?$" (toString .) -}}
{{ mulf (trimSuffix $unit (toString .) | float64) (get $units $unit) }}
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
{{- $count := "^([0-9]+|[0-9]{1,2}%|100%)$" -}}
{{- $duration := "^([0-9]+(\\.[0-9]+)?(h|m|s|ms))+$" -}}
{{- $label := "^[a-z]([a-z0-9-]*[a-z0-9])?$" -}}
{{- $monitors := dict "serviceMonitor" $v.serviceMonitor "podMonitor" $v.podMonitor -}}
{{- /* As container runtimes read it: a host has a dot, a port, or is localhost. */ -}}
{{- $host := "(localhost(:[0-9]+)?|[A-Za-z0-9-]+(\\.[A-Za-z0-9-]+)+(:[0-9]+)?|[A-Za-z0-9-]+:[0-9]+|\\[[0-9A-Fa-f:]+\\](:[0-9]+)?)" -}}
{{- $path := "[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*" -}}
{{- $registry := printf "^((%s(/%s)?)|%s)/?$" $host $path $path -}}
{{- $rancher := get ($v.global.cattle | default dict) "systemDefaultRegistry" -}}
{{- $key := "^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$" -}}
{{- $forms := list
  (list "the name of all objects" (include "gmsa-webhook.fullname" .) $label "a DNS label, which starts with a letter and has no dots: set fullnameOverride")
  (list "nameOverride" $v.nameOverride "^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$" "a label's value: at most 63 letters, digits and . _ -, with a letter or digit at both ends")
  (list "namespaceOverride" $v.namespaceOverride "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$" "a namespace's name")
  (list "serviceAccount.name" $v.serviceAccount.name $dnsName "a service account's name")
  (list "certificates.certManager.duration" $v.certificates.certManager.duration $duration "a duration with units, such as 2160h")
  (list "certificates.certManager.renewBefore" $v.certificates.certManager.renewBefore $duration "a duration with units, such as 720h")
  (list "containerPort" $v.containerPort "^[0-9]+$" "a port: a number from 1 to 65535")
  (list "image.repository" $v.image.repository (printf "^(%s/)?%s$" $host $path) "an image in lower case, without https://, tag and digest, such as registry.example.com/gmsa-webhook")
  (list "global.systemDefaultRegistry" $v.global.systemDefaultRegistry $registry "a registry without https://, such as registry.example.com")
  (list "global.cattle.systemDefaultRegistry" $rancher $registry "a registry without https://, such as registry.example.com")
  (list "prometheusRule.runbookUrl" $v.prometheusRule.runbookUrl "^[A-Za-z0-9./][^\\s#]*$" "an address without spaces and #: the alerts add #ALERT")
  (list "image.tag" $v.image.tag "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$" "an image's tag")
  (list "image.digest" $v.image.digest "^sha256:[a-f0-9]{64}$" "a digest: sha256: and 64 hexadecimal digits")
  (list "certificates.secretName" $v.certificates.secretName $dnsName "a Secret's name")
  (list "credential.domainJoinConfig.dnsName" $join.dnsName $dnsDomain "a domain's DNS name, such as corp.example.com")
  (list "credential.domainJoinConfig.dnsTreeName" $join.dnsTreeName $dnsDomain "a domain's DNS name, such as example.com")
  (list "credential.domainJoinConfig.guid" $join.guid "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$" "a GUID without braces")
  (list "credential.domainJoinConfig.machineAccountName" $join.machineAccountName "^[A-Za-z0-9]([A-Za-z0-9._-]{0,13}[A-Za-z0-9])?$" "an account's name: at most 15 characters, without the trailing $ and without a domain")
  (list "credential.domainJoinConfig.netBiosName" $join.netBiosName "^[^\\\\/:*?\"<>|\\s]+$" "a domain's NetBIOS name, such as CORP")
  (list "credential.domainJoinConfig.sid" $join.sid "^S-1-5-21(-[0-9]+){3}$" "a domain's SID: S-1-5-21 and three numbers (an account's has four)")
  (list "credential.hostAccountConfig.portableCcgVersion" $v.credential.hostAccountConfig.portableCcgVersion "^1$" "\"1\"")
  (list "webhooks.optOutLabel" $v.webhooks.optOutLabel $key "a label's key, such as windows.k8s.io/disabled")
  (list "logLevel" $v.logLevel "^(?i)(error|warn|warning|info|debug|trace|\\S+=\\S+)$" "a level: error, warn, info, debug or trace")
  (list "authorizationCacheTtl" $v.authorizationCacheTtl $duration "a duration with units, such as 10s or 1m30s")
  (list "podDisruptionBudget.minAvailable" $v.podDisruptionBudget.minAvailable $count "a number or a percentage")
  (list "podDisruptionBudget.maxUnavailable" $v.podDisruptionBudget.maxUnavailable $count "a number or a percentage")
  (list "clientCa.configMapName" $v.clientCa.configMapName $dnsName "a ConfigMap's name")
  (list "clientCa.key" $v.clientCa.key "^[-._A-Za-z0-9]+$" "a key of a ConfigMap")
  (list "certificates.certManager.issuerRef.name" $v.certificates.certManager.issuerRef.name $dnsName "an issuer's name")
  (list "priorityClassName" $v.priorityClassName $dnsName "a priority class's name")
  (list "updateStrategy.rollingUpdate.maxSurge" (dig "rollingUpdate" "maxSurge" "" $v.updateStrategy) $count "a number or a percentage")
  (list "updateStrategy.rollingUpdate.maxUnavailable" (dig "rollingUpdate" "maxUnavailable" "" $v.updateStrategy) $count "a number or a percentage")
  (list "updateStrategy.type" $v.updateStrategy.type "^(RollingUpdate|Recreate)$" "RollingUpdate or Recreate")
  (list "probes.startup.successThreshold" $v.probes.startup.successThreshold "^1$" "1, which is all that Kubernetes takes")
  (list "probes.liveness.successThreshold" $v.probes.liveness.successThreshold "^1$" "1, which is all that Kubernetes takes")
-}}
{{- range $namespace := $v.webhooks.warnNamespaces -}}
{{- $forms = append $forms (list "webhooks.warnNamespaces" $namespace "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$" "a namespace's name") -}}
{{- end -}}
{{- range $kind := list "requests" "limits" -}}
{{- range $name, $quantity := get $v.resources $kind -}}
{{- $forms = append $forms (list (printf "the key in resources.%s" $kind) $name "^(cpu|memory|ephemeral-storage|hugepages-.+|.+/.+)$" "a resource of a container: cpu, memory, ephemeral-storage, or one with a domain") -}}
{{- $forms = append $forms (list (printf "resources.%s.%s" $kind $name) $quantity "^[0-9]+(\\.[0-9]+)?([numkMGTPE]|[KMGTPE]i|e\\+?[0-9]+)?$" "a quantity, such as 100m or 128Mi") -}}
{{- end -}}
{{- end -}}
{{- range $volume := $v.extraVolumes -}}
{{- $forms = append $forms (list "extraVolumes" $volume.name "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$" "a volume's name: lower-case letters, digits and -") -}}
{{- end -}}
{{- range $mount := $v.extraVolumeMounts -}}
{{- $forms = append $forms (list (printf "extraVolumeMounts: mountPath of %s" $mount.name) $mount.mountPath "^/[^:]*$" "an absolute path without :") -}}
{{- end -}}
{{- range $address := $v.dnsConfig.nameservers -}}
{{- $forms = append $forms (list "dnsConfig.nameservers" $address "^((25[0-5]|2[0-4][0-9]|1?[0-9]{1,2})(\\.(25[0-5]|2[0-4][0-9]|1?[0-9]{1,2})){3}|[0-9A-Fa-f.]*:[0-9A-Fa-f.:]*)$" "an IP address") -}}
{{- end -}}
{{- range $name, $monitor := $monitors -}}
{{- $forms = append $forms (list (printf "%s.jobLabel" $name) $monitor.jobLabel $key "a label's key, such as app.kubernetes.io/name") -}}
{{- range $key := list "interval" "scrapeTimeout" -}}
{{- $forms = append $forms (list (printf "%s.%s" $name $key) (get $monitor $key) "^([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$" "a duration with units, such as 30s or 1m30s") -}}
{{- end -}}
{{- end -}}
{{- range $name, $threshold := $v.prometheusRule.thresholds -}}
{{- $forms = append $forms (list (printf "prometheusRule.thresholds.%s" $name) $threshold "^[0-9]+(\\.[0-9]+)?$" "a number") -}}
{{- end -}}
{{- $labels := dict "commonLabels" $v.commonLabels "podLabels" $v.podLabels "nodeSelector" $v.nodeSelector "serviceMonitor.labels" $v.serviceMonitor.labels
  "podMonitor.labels" $v.podMonitor.labels "prometheusRule.labels" $v.prometheusRule.labels "dashboard.labels" $v.dashboard.labels
  "webhooks.namespaceSelector.matchLabels" $v.webhooks.namespaceSelector.matchLabels "webhooks.objectSelector.matchLabels" $v.webhooks.objectSelector.matchLabels -}}
{{- $annotations := dict "commonAnnotations" $v.commonAnnotations "podAnnotations" $v.podAnnotations "service.annotations" $v.service.annotations
  "webhooks.annotations" $v.webhooks.annotations "serviceAccount.annotations" $v.serviceAccount.annotations "serviceAccountAnnotations" $v.serviceAccountAnnotations
  "serviceMonitor.annotations" $v.serviceMonitor.annotations "podMonitor.annotations" $v.podMonitor.annotations
  "prometheusRule.annotations" $v.prometheusRule.annotations "dashboard.annotations" $v.dashboard.annotations -}}
{{- range $name, $map := merge dict $labels $annotations -}}
{{- range $given, $value := $map -}}
{{- $forms = append $forms (list (printf "the key in %s" $name) $given $key "one that Kubernetes takes, such as example.com/team: what is before the slash is in lower case") -}}
{{- if hasKey $labels $name -}}
{{- $forms = append $forms (list (printf "%s.%s" $name $given) $value "^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$" "a label's value: at most 63 letters, digits and . _ -, with a letter or digit at both ends") -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $given, $value := $v.prometheusRule.alertLabels -}}
{{- $forms = append $forms (list "the key in prometheusRule.alertLabels" $given "^[A-Za-z_][A-Za-z0-9_]*$" "a label of Prometheus: letters, digits and _") -}}
{{- end -}}
{{- range $name, $change := $v.prometheusRule.alerts -}}
{{- range $given, $value := ($change | default dict).labels -}}
{{- $forms = append $forms (list (printf "the key in prometheusRule.alerts.%s.labels" $name) $given "^[A-Za-z_][A-Za-z0-9_]*$" "a label of Prometheus: letters, digits and _") -}}
{{- end -}}
{{- $forms = append $forms (list (printf "prometheusRule.alerts.%s.for" $name) (get ($change | default dict) "for") "^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$" "a duration with units, such as 10m or 1h30m") -}}
{{- end -}}
{{- range $cidr := $v.networkPolicy.apiServerCidrs -}}
{{- $forms = append $forms (list "networkPolicy.apiServerCidrs" $cidr "^([0-9.]+/([0-9]|[12][0-9]|3[0-2])|[0-9A-Fa-f.]*:[0-9A-Fa-f.:]*/([0-9]{1,2}|1[01][0-9]|12[0-8]))$" "a CIDR, such as 10.0.0.1/32") -}}
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
{{- $issuer := .Values.certificates.certManager.issuerRef -}}
{{- if and $issuer.kind (not (has $issuer.kind (list "Issuer" "ClusterIssuer"))) (eq ($issuer.group | default "cert-manager.io") "cert-manager.io") -}}
{{- fail (printf "certificates.certManager.issuerRef.kind %q is not Issuer or ClusterIssuer: correct it, or set certificates.certManager.issuerRef.group" $issuer.kind) -}}
{{- end -}}
{{- $lives := include "gmsa-webhook.milliseconds" .Values.certificates.certManager.duration | int -}}
{{- $renewed := include "gmsa-webhook.milliseconds" .Values.certificates.certManager.renewBefore | int -}}
{{- if and $lives (lt $lives 3600000) -}}
{{- fail (printf "certificates.certManager.duration (%s) is less than 1h, which cert-manager does not take" .Values.certificates.certManager.duration) -}}
{{- end -}}
{{- if and $renewed (ge $renewed ($lives | default 7776000000)) -}}
{{- fail (printf "certificates.certManager.renewBefore (%s) is not less than certificates.certManager.duration (%s)" .Values.certificates.certManager.renewBefore (.Values.certificates.certManager.duration | default "2160h")) -}}
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

{{/*
Changes of the certificate's source that would leave the API server without trust in the pods of before, or in the new ones: the Deployment changes before the
webhook configurations do, and pods are replaced after both. docs/certificates.md has the table of all changes. And Secrets that no pod could start with, or that
the API server would not trust. Each line is a condition and what is said then; the first one counts.
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
{{- $new := list -}}
{{- if $fromValues }}{{ $new = include "gmsa-webhook.authorities" (include "gmsa-webhook.caBundle" .) | fromJsonArray }}{{ end -}}

{{- $installed := include "gmsa-webhook.installedSource" . | fromYaml -}}
{{- $source := $installed.source | default "" -}}
{{- $isSame := eq ($installed.secret | default "") $name -}}
{{- $old := include "gmsa-webhook.authorities" ($installed.caBundle | default "") | fromJsonArray -}}
{{- $kept := include "gmsa-webhook.common" (dict "of" $old "in" $new) | int -}}
{{- /* What is installed as it is works, whatever can be said of it: the CA of ca.crt may be one that the other has signed. */ -}}
{{- $isUnchanged := and (eq $source "values") $isSame (eq $kept (len $old)) (eq $kept (len $new)) -}}
{{- $issuer := "" -}}
{{- if and $injects (eq $source "injected") }}{{ $issuer = include "gmsa-webhook.installedIssuer" . }}{{ end -}}

{{- $steps := "docs/certificates.md lists the steps" -}}
{{- $settle := printf "pods of before are still being replaced, and the CA that they are trusted by would go: wait for kubectl -n %s rollout status deployment/%s, then upgrade again" (include "gmsa-webhook.namespace" .) (include "gmsa-webhook.fullname" .) -}}
{{- $lacks := printf "certificates.secretName: the Secret %s has no %%s, so no new pod would start: add it" $name -}}
{{- range list
  (list (and $data (not (hasKey $data "tls.crt"))) (printf $lacks "tls.crt"))
  (list (and $data (not (hasKey $data "tls.key"))) (printf $lacks "tls.key"))
  (list (and $data $publishes (not (hasKey $data "ca.crt"))) (printf "%s, or set certificates.caBundle" (printf $lacks "ca.crt")))
  (list (and $new $held (not $isUnchanged) (eq (include "gmsa-webhook.common" (dict "of" $held "in" $new)) "0")) (printf "certificates.caBundle has none of the CAs that ca.crt of the Secret %s has, so the API server would trust no pod: add them to certificates.caBundle, or remove it, and the webhook publishes ca.crt; %s" $name $steps))
  (list (and $publishes .Release.IsUpgrade (eq $source "values") (not $certificates.formerCaBundle)) (printf "without certificates.caBundle the API server trusts no pod until the new ones are ready, so pods that use GMSA would be refused: set certificates.formerCaBundle to what certificates.caBundle was, and leave it out of the next upgrade; %s" $steps))
  (list (and $publishes $source (ne $source "values") $certificates.formerCaBundle) (printf "certificates.formerCaBundle would replace what the webhook has published since: it is for the one upgrade that takes certificates.caBundle away, leave it out now; %s" $steps))
  (list (and $fromValues $source (ne $source "values") (not (and $isSame (eq $source "published")))) (printf "with certificates.caBundle the API server would trust the new pods alone, and refuse pods that use GMSA while old ones answer: upgrade with certificates.mode=secret and no certificates.caBundle first, wait until all pods are replaced, then set certificates.caBundle; %s" $steps))
  (list (and $fromValues (eq $source "values") (lt $kept (len $old)) (not $isSame)) (printf "pods of before serve the certificate of the Secret %s until they are replaced, and certificates.caBundle no longer has its CA: keep that CA in certificates.caBundle beside the new one, wait until all pods are replaced, then leave it out; %s" $installed.secret $steps))
  (list (and $fromValues (eq $source "values") $old (eq $kept 0)) (printf "certificates.caBundle has none of the CAs that it had, so pods that use GMSA would be refused until every pod serves a certificate of the new one: set certificates.caBundle to both first, put the new certificate into the Secret %s, then leave the old CA out; %s" $name $steps))
  (list (and $fromValues (or (eq $source "published") (lt $kept (len $old))) (not $installed.settled)) $settle)
  (list (and $injects $source (ne $source "injected") (not (and $isSame (eq $source "published")))) (printf "cert-manager would replace the caBundle while old pods answer, so pods that use GMSA would be refused: add certificates.certManager.injectCa=false, wait until all pods are replaced, then leave it out of the next upgrade; %s" $steps))
  (list (and $injects (eq $source "published") (not $installed.settled)) $settle)
  (list (and $issuer (ne $issuer (include "gmsa-webhook.issuer" .))) (printf "with another certificates.certManager.issuerRef cert-manager would replace the caBundle while pods still serve the certificate of before, so pods that use GMSA would be refused: add certificates.certManager.injectCa=false and keep the issuer, wait until all pods are replaced, change the issuer in a second upgrade, and leave injectCa out of a third; %s" $steps))
-}}
{{- if index . 0 }}{{ fail (index . 1) }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* What pods of before are found by, and have their rights by: it would change before they are replaced. */}}
{{- define "gmsa-webhook.checkIdentity" -}}
{{- if .Release.IsUpgrade -}}
{{- $instead := "so pods that use GMSA would be refused until the new ones are ready: install a second release under another name with the new value, then uninstall this one" -}}
{{- $account := include "gmsa-webhook.serviceAccount" . -}}
{{- $namespace := include "gmsa-webhook.namespace" . -}}
{{- $name := include "gmsa-webhook.fullname" . -}}
{{- $of := include "gmsa-webhook.installedIdentity" . | fromYaml -}}
{{- range list
  (list $of.name $name (printf "the name of all objects changes from %s to %s (nameOverride, fullnameOverride), and no pod runs yet under the new one, %s" $of.name $name $instead))
  (list $of.namespace $namespace (printf "the namespace changes from %s to %s (namespaceOverride), where no pod runs yet, %s" $of.namespace $namespace $instead))
  (list $of.account $account (printf "the service account changes from %s to %s (serviceAccount.name, serviceAccount.create), and the pods of before would lose their rights, %s" $of.account $account $instead))
-}}
{{- if and (index . 0) (ne (index . 0) (index . 1)) }}{{ fail (index . 2) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Namespaces besides the release's: in one that is not there, or is being deleted, an install would end in the middle. */}}
{{- define "gmsa-webhook.checkNamespaces" -}}
{{- $named := dict "namespaceOverride" .Values.namespaceOverride -}}
{{- range $name := list "serviceMonitor" "podMonitor" "prometheusRule" "dashboard" -}}
{{- $object := get $.Values $name -}}
{{- if $object.enabled }}{{ $_ := set $named (printf "%s.namespace" $name) $object.namespace }}{{ end -}}
{{- end -}}
{{- range $value, $namespace := $named -}}
{{- if and $namespace (ne $namespace $.Release.Namespace) (include "gmsa-webhook.hasCluster" $) -}}
{{- $found := include "gmsa-webhook.installedNamespace" $namespace -}}
{{- if not $found }}{{ fail (printf "%s: there is no namespace %s: create it first" $value $namespace) }}{{ end -}}
{{- if eq $found "Terminating" }}{{ fail (printf "%s: the namespace %s is being deleted: wait until it is gone, and create it again" $value $namespace) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
