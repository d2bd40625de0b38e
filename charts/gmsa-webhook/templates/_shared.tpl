{{/*
What the charts gmsa-webhook and gmsa-tickets both need: forms of images, memory and networks, the image itself, alerts. It is written in gmsa-webhook;
`just generate` makes the copy in gmsa-tickets, with that chart's name in the names of the templates (_names.tpl says why).
*/}}

{{/* Takes a list of pairs, (list CONDITION MESSAGE), and fails with the message of the first condition that holds. */}}
{{- define "gmsa-webhook.refuse" -}}
{{- range . -}}
{{- if index . 0 }}{{ fail (printf "values: %s" (index . 1)) }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* Takes a list of forms: name, value, pattern, the form in words. An empty text counts as not set. */}}
{{- define "gmsa-webhook.refuseForms" -}}
{{- range . -}}
{{- $text := ternary "" (index . 1 | toString) (kindIs "invalid" (index . 1)) -}}
{{- include "gmsa-webhook.refuse" (list (list (and $text (not (regexMatch (index . 2) $text))) (printf "%s %q is not %s" (index . 0) $text (index . 3)))) -}}
{{- end -}}
{{- end -}}

{{/* The reference of an image: a host has a dot, a port, or is localhost. A first part in upper case, which container runtimes take for a host too, is a slip. */}}
{{- define "gmsa-webhook.checkImage" -}}
{{- $label := "[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?" -}}
{{- $host := "((localhost|L(\\.L)+|\\[[0-9A-Fa-f:]+\\])(:[0-9]+)?|L:[0-9]+)" | replace "L" $label -}}
{{- $path := "P(/P)*" | replace "P" "[a-z0-9]+((\\.|__?|-+)[a-z0-9]+)*" -}}
{{- $images := dict "image" .Values.image -}}
{{- with .Values.tickets }}{{ $_ := set $images "tickets.image" .image }}{{ end -}}
{{- $forms := list -}}
{{- range $name, $image := $images -}}
{{- $example := eq $name "image" | ternary $.Chart.Name "gmsa-tickets" | printf "an image in lower case, without https://, tag and digest, such as registry.example.com/%s" -}}
{{- $forms = concat $forms (list
  (list (printf "%s.repository" $name) $image.repository (printf "^(%s/)?%s$" $host $path) $example)
  (list (printf "%s.tag" $name) $image.tag "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$" (printf "a tag, such as %s: at most 128 letters, digits and . _ -, with no . or - in front" $.Chart.AppVersion))
  (list (printf "%s.digest" $name) $image.digest "^sha256:[a-f0-9]{64}$" "a digest: sha256: and 64 hexadecimal digits")
) -}}
{{- end -}}
{{- $global := .Values.global -}}
{{- range $name, $registry := dict "systemDefaultRegistry" $global.systemDefaultRegistry "cattle.systemDefaultRegistry" (get ($global.cattle | default dict) "systemDefaultRegistry") "imageRegistry" $global.imageRegistry -}}
{{- $forms = append $forms (list (printf "global.%s" $name) $registry (printf "^((%s(/%s)?)|%s)/?$" $host $path $path) "a registry without https://, such as registry.example.com") -}}
{{- end -}}
{{- include "gmsa-webhook.refuseForms" $forms -}}
{{- end -}}

{{/* Memory of less than a mebibyte, which a forgotten or a small unit makes. */}}
{{- define "gmsa-webhook.checkMemory" -}}
{{- range $kind := list "requests" "limits" -}}
{{- $memory := get (get $.Values.resources $kind | default dict) "memory" | toString -}}
{{- $isSmall := and (ne $memory "0") (regexMatch "^([0-9.]{1,6}|[0-9.]{1,9}m|[0-9.]{1,3}(k|Ki)|[0-9.]{1,3}[eE][+]?[0-4])$" $memory) -}}
{{- $mebibytes := regexFind "^[0-9]{2,4}([.][0-9]*)?(m|k|Ki)?$" $memory | regexFind "^[0-9]+" | default "128" -}}
{{- include "gmsa-webhook.refuse" (list (list $isSmall (printf "resources.%s.memory %q is less than a mebibyte, as m means thousandths of a byte, k thousands, and a number bytes: write it in Mi, such as %sMi" $kind $memory $mebibytes))) -}}
{{- end -}}
{{- end -}}

{{/* The addresses of networkPolicy: in lists of CIDRs, of peers, and of rules with peers. */}}
{{- define "gmsa-webhook.checkCidrs" -}}
{{- $four := "(B\\.){3}B" | replace "B" "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])" -}}
{{- $six := "(H:){7}H|(H:){1,7}:|(H:){1,6}:H|(H:){1,5}(:H){1,2}|(H:){1,4}(:H){1,3}|(H:){1,3}(:H){1,4}|(H:){1,2}(:H){1,5}|H:(:H){1,6}|:((:H){1,7}|:)|(H:){6}F|(H:){5}:F|(H:){4}:(H:)?F|(H:){3}:(H:){0,2}F|(H:){2}:(H:){0,3}F|H::(H:){0,4}F|::(H:){0,5}F" | replace "F" $four | replace "H" "[0-9A-Fa-f]{1,4}" -}}
{{- $cidr := printf "^(%s/([0-9]|[12][0-9]|3[0-2])|(%s)/([0-9]|[1-9][0-9]|1[01][0-9]|12[0-8]))$" $four $six -}}
{{- range $key, $list := .Values.networkPolicy -}}
{{- range kindIs "slice" $list | ternary $list list -}}
{{- $found := kindIs "string" . | ternary (list .) list -}}
{{- if kindIs "map" . -}}
{{- range append (.to | default list) . -}}
{{- $block := get (. | default dict) "ipBlock" | default dict -}}
{{- $found = concat $found (list (get $block "cidr")) (get $block "except" | default list) -}}
{{- end -}}
{{- end -}}
{{- range $found -}}
{{- include "gmsa-webhook.refuseForms" (list (list (printf "networkPolicy.%s" $key) . $cidr "a CIDR, such as 10.0.0.1/32 or fd00::/64")) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The pull secrets of a pod: imagePullSecrets, then global.imagePullSecrets. */}}
{{- define "gmsa-webhook.pullSecrets" -}}
{{- $secrets := .Values.imagePullSecrets -}}
{{- range .Values.global.imagePullSecrets -}}
{{- $secrets = append $secrets (kindIs "string" . | ternary (dict "name" .) .) -}}
{{- end -}}
{{- with uniq $secrets -}}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end -}}
{{- end -}}

{{/* The registry of all charts: global.systemDefaultRegistry, Rancher's form of it, or global.imageRegistry. */}}
{{- define "gmsa-webhook.registry" -}}
{{ include "gmsa-webhook.mirror" . | default .Values.global.imageRegistry | default "" | trimSuffix "/" }}
{{- end -}}

{{/* The registry that is put before the whole of image.repository; global.imageRegistry replaces the registry in it instead. */}}
{{- define "gmsa-webhook.mirror" -}}
{{ .Values.global.systemDefaultRegistry | default (get (.Values.global.cattle | default dict) "systemDefaultRegistry") }}
{{- end -}}

{{- define "gmsa-webhook.image" -}}
{{ include "gmsa-webhook.imageOf" (dict "root" . "image" .Values.image) }}
{{- end -}}

{{/* Takes a dict: "root" CONTEXT, "image" with repository, tag and digest. */}}
{{- define "gmsa-webhook.imageOf" -}}
{{- $repository := .image.repository -}}
{{- if and .root.Values.global.imageRegistry (not (include "gmsa-webhook.mirror" .root)) -}}
{{- $repository = regexReplaceAll "^(localhost|[^/]*[.:][^/]*)/" $repository "" -}}
{{- end -}}
{{- with include "gmsa-webhook.registry" .root }}{{ . }}/{{ end }}{{ $repository -}}
{{- if .image.digest }}@{{ .image.digest }}{{ else }}:{{ .image.tag | default .root.Chart.AppVersion }}{{ end -}}
{{- end -}}

{{/* Changes of alerts that do not exist, whether the PrometheusRule is created or not. */}}
{{- define "gmsa-webhook.checkAlerts" -}}
{{- $names := list -}}
{{- range (.Files.Get "files/alerts.yaml" | fromYaml).groups }}{{ range .rules }}{{ $names = append $names .alert }}{{ end }}{{ end -}}
{{- range $name := keys .Values.prometheusRule.alerts | sortAlpha -}}
{{- include "gmsa-webhook.refuse" (list (list (not (has $name $names)) (printf "prometheusRule.alerts has %q, which is no alert: there are %s" $name (join ", " $names)))) -}}
{{- end -}}
{{- end -}}

{{/*
The rules of files/alerts.yaml. Takes a dict: "root" CONTEXT, "replicas" NUMBER (the fewest that run), "without" LIST of alerts.
*/}}
{{- define "gmsa-webhook.rules" -}}
{{- $values := .root.Values.prometheusRule -}}
{{- $pods := include "gmsa-webhook.ownPods" .root -}}
{{- $text := .root.Files.Get "files/alerts.yaml" | replace "RELEASE" $pods | replace "REPLICAS" (toString .replicas) -}}
{{- range $name, $threshold := $values.thresholds -}}
{{- $text = replace (printf "THRESHOLD(%s)" $name) (toString $threshold) $text -}}
{{- end -}}
{{- $group := index ($text | fromYaml).groups 0 -}}
{{- $kept := list -}}
{{- range $rule := $group.rules -}}
{{- $change := get $values.alerts $rule.alert | default dict -}}
{{- $severity := dict "severity" ($change.severity | default $rule.labels.severity) -}}
{{- $_ := set $rule "labels" (merge dict ($change.labels | default dict) $severity $values.alertLabels) -}}
{{- $_ := set $rule.annotations "runbook_url" (printf "%s#%s" $values.runbookUrl (lower $rule.alert)) -}}
{{- $_ := set $rule "for" ($change.for | default $rule.for) -}}
{{- if not (or (has $rule.alert $.without) (eq (toString $change.enabled) "false")) }}{{ $kept = append $kept $rule }}{{ end -}}
{{- end -}}
groups:
  {{- list (dict "name" $group.name "rules" $kept) | toYaml | nindent 2 }}
{{- end -}}
