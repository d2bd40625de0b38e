{{/*
What the charts gmsa-webhook and gmsa-tickets both need: names that are no values, forms of images and networks, the image itself, alerts. It is written in gmsa-webhook;
`just generate` makes the copy in gmsa-tickets, with that chart's name in the names of the templates.
*/}}

{{/* Takes a list of pairs, (list CONDITION MESSAGE), and fails with the message of the first condition that holds. */}}
{{- define "gmsa-tickets.refuse" -}}
{{- range . -}}
{{- if index . 0 }}{{ fail (printf "values: %s" (index . 1)) }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* Takes a list of forms: name, value, pattern, the form in words. An empty text counts as not set. */}}
{{- define "gmsa-tickets.refuseForms" -}}
{{- range . -}}
{{- $text := ternary "" (index . 1 | toString) (kindIs "invalid" (index . 1)) -}}
{{- include "gmsa-tickets.refuse" (list (list (and $text (not (regexMatch (index . 2) $text))) (printf "%s %q is not %s" (index . 0) $text (index . 3)))) -}}
{{- end -}}
{{- end -}}

{{/* Names that are no values of this chart. The schema takes them where the chart itself makes the group, so that the message can name ours. */}}
{{- define "gmsa-tickets.checkNames" -}}
{{- $own := omit (.Files.Get "files/values.yaml" | fromYaml) "global" -}}
{{- $others := .Files.Get "files/other-names.yaml" | fromYaml -}}
{{- /* A parent chart has global for all of its charts, with any keys, and enabled as a condition; values of former releases have defaultsOf. */ -}}
{{- $values := omit .Values "global" "enabled" "defaultsOf" -}}
{{- $names := include "gmsa-tickets.names" (dict "of" $own "group" "") | trim | splitList "\n" -}}
{{- with include "gmsa-tickets.unknown" (dict "values" $values "own" $own "group" "" "isOpen" false "names" $names "others" $others) | trim }}
{{- fail . }}
{{- /* `helm lint` logs fail and goes on; a template that is not there ends it. */}}
{{- include . $ }}
{{- end -}}
{{- end -}}

{{/* The names of values, a line each. */}}
{{- define "gmsa-tickets.names" -}}
{{- range $key, $value := .of }}
{{- $name := list $.group $key | compact | join "." }}
{{ $name }}
{{- if kindIs "map" $value }}{{ include "gmsa-tickets.names" (dict "of" $value "group" $name) }}{{ end }}
{{- end }}
{{- end -}}

{{/* A message for each unknown name, a line each. In an open group, whose keys are Kubernetes' or the user's, only those of files/other-names.yaml are unknown. */}}
{{- define "gmsa-tickets.unknown" -}}
{{- $open := list "annotations" "labels" "resources" "podSecurityContext" "securityContext" "startup" "liveness" "readiness" -}}
{{- range $key, $value := .values -}}
{{- $name := list $.group $key | compact | join "." -}}
{{- $default := get $.own $key -}}
{{- if and (hasKey $.own $key) (kindIs "map" $value) -}}
{{- $isOpen := or $.isOpen (has $key $open) (and (kindIs "map" $default) (empty $default)) -}}
{{- include "gmsa-tickets.unknown" (dict "values" $value "own" (kindIs "map" $default | ternary $default dict) "group" $name "isOpen" $isOpen "names" $.names "others" $.others) -}}
{{- else if not (or (hasKey $.own $key) (kindIs "invalid" $value)) -}}
{{- with include "gmsa-tickets.instead" (dict "name" $name "own" $.own "group" $.group "isOpen" $.isOpen "names" $.names "others" $.others) -}}
{{ printf "values: %s is not a value of this chart: %s\n" $name . }}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What is instead of a name: what files/other-names.yaml says, or our name that is spelt alike, or those that end alike, or the group's. */}}
{{- define "gmsa-tickets.instead" -}}
{{- $spelling := include "gmsa-tickets.spelling" .name -}}
{{- $end := include "gmsa-tickets.spelling" (splitList "." .name | last) -}}
{{- $said := "" -}}
{{- $alike := list -}}
{{- $ending := list -}}
{{- range $names, $instead := .others -}}
{{- range splitList ", " $names -}}
{{- if or (eq . $.name) (and (not $said) (eq (include "gmsa-tickets.spelling" .) $spelling)) }}{{ $said = replace "GROUP" $.group $instead }}{{ end -}}
{{- end -}}
{{- end -}}
{{- range .names -}}
{{- if eq (include "gmsa-tickets.spelling" .) $spelling }}{{ $alike = append $alike . }}{{ end -}}
{{- if eq (include "gmsa-tickets.spelling" (splitList "." . | last)) $end }}{{ $ending = append $ending . }}{{ end -}}
{{- end -}}
{{- $use := $alike | default (gt (len $ending) 3 | ternary list $ending) -}}
{{- if $said -}}
{{ $said }}
{{- else if .isOpen -}}
{{- else if $use -}}
use {{ join " or " $use }}
{{- else if .own -}}
{{ .group | default "this chart" }} has {{ keys .own | sortAlpha | join ", " }}
{{- else -}}
{{ .group }} has no values below it
{{- end -}}
{{- end -}}

{{/* A name without what slips change: case, dots and dashes, the s of a plural, the order of letters. */}}
{{- define "gmsa-tickets.spelling" -}}
{{ regexReplaceAll "s?([._-]|$)" (lower .) "" | splitList "" | sortAlpha | join "" }}
{{- end -}}

{{/* As container runtimes read an image: a host has a dot, a port, or is localhost. */}}
{{- define "gmsa-tickets.checkImage" -}}
{{- $host := "(localhost(:[0-9]+)?|[A-Za-z0-9-]+(\\.[A-Za-z0-9-]+)+(:[0-9]+)?|[A-Za-z0-9-]+:[0-9]+|\\[[0-9A-Fa-f:]+\\](:[0-9]+)?)" -}}
{{- $path := "[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*" -}}
{{- $registry := list (printf "^((%s(/%s)?)|%s)/?$" $host $path $path) "a registry without https://, such as registry.example.com" -}}
{{- include "gmsa-tickets.refuseForms" (list
  (list "image.repository" .Values.image.repository (printf "^(%s/)?%s$" $host $path) (printf "an image in lower case, without https://, tag and digest, such as registry.example.com/%s" .Chart.Name))
  (list "image.digest" .Values.image.digest "^sha256:[a-f0-9]{64}$" "a digest: sha256: and 64 hexadecimal digits")
  (concat (list "global.systemDefaultRegistry" (dig "systemDefaultRegistry" "" .Values.global)) $registry)
  (concat (list "global.cattle.systemDefaultRegistry" (dig "cattle" "systemDefaultRegistry" "" .Values.global)) $registry)
  (concat (list "global.imageRegistry" (dig "imageRegistry" "" .Values.global)) $registry)
) -}}
{{- end -}}

{{/* The addresses of networkPolicy: in lists of CIDRs, of peers, and of rules with peers. */}}
{{- define "gmsa-tickets.checkCidrs" -}}
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
{{- include "gmsa-tickets.refuseForms" (list (list (printf "networkPolicy.%s" $key) . $cidr "a CIDR, such as 10.0.0.1/32 or fd00::/64")) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The pull secrets of a pod: imagePullSecrets, then global.imagePullSecrets. */}}
{{- define "gmsa-tickets.pullSecrets" -}}
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
{{- define "gmsa-tickets.registry" -}}
{{ include "gmsa-tickets.mirror" . | default .Values.global.imageRegistry | default "" | trimSuffix "/" }}
{{- end -}}

{{/* The registry that is put before the whole of image.repository; global.imageRegistry replaces the registry in it instead. */}}
{{- define "gmsa-tickets.mirror" -}}
{{ .Values.global.systemDefaultRegistry | default (get (.Values.global.cattle | default dict) "systemDefaultRegistry") }}
{{- end -}}

{{- define "gmsa-tickets.image" -}}
{{ include "gmsa-tickets.imageOf" (dict "root" . "image" .Values.image) }}
{{- end -}}

{{/* Takes a dict: "root" CONTEXT, "image" with repository, tag and digest. */}}
{{- define "gmsa-tickets.imageOf" -}}
{{- $repository := .image.repository -}}
{{- if and .root.Values.global.imageRegistry (not (include "gmsa-tickets.mirror" .root)) -}}
{{- $repository = regexReplaceAll "^(localhost|[^/]*[.:][^/]*)/" $repository "" -}}
{{- end -}}
{{- with include "gmsa-tickets.registry" .root }}{{ . }}/{{ end }}{{ $repository -}}
{{- if .image.digest }}@{{ .image.digest }}{{ else }}:{{ .image.tag | default .root.Chart.AppVersion }}{{ end -}}
{{- end -}}

{{/*
The rules of files/alerts.yaml. Takes a dict: "root" CONTEXT, "replicas" NUMBER (the fewest that run), "without" LIST of alerts.
*/}}
{{- define "gmsa-tickets.rules" -}}
{{- $values := .root.Values.prometheusRule -}}
{{- $pods := include "gmsa-tickets.ownPods" .root -}}
{{- $text := .root.Files.Get "files/alerts.yaml" | replace "RELEASE" $pods | replace "REPLICAS" (toString .replicas) -}}
{{- range $name, $threshold := $values.thresholds -}}
{{- $text = replace (printf "THRESHOLD(%s)" $name) (toString $threshold) $text -}}
{{- end -}}
{{- $group := index ($text | fromYaml).groups 0 -}}
{{- $names := list -}}
{{- $kept := list -}}
{{- range $rule := $group.rules -}}
{{- $change := get $values.alerts $rule.alert | default dict -}}
{{- $severity := dict "severity" ($change.severity | default $rule.labels.severity) -}}
{{- $_ := set $rule "labels" (merge dict ($change.labels | default dict) $severity $values.alertLabels) -}}
{{- $_ := set $rule.annotations "runbook_url" (printf "%s#%s" $values.runbookUrl (lower $rule.alert)) -}}
{{- $_ := set $rule "for" ($change.for | default $rule.for) -}}
{{- $names = append $names $rule.alert -}}
{{- if not (or (has $rule.alert $.without) (eq (toString $change.enabled) "false")) }}{{ $kept = append $kept $rule }}{{ end -}}
{{- end -}}
{{- range $name := keys $values.alerts | sortAlpha -}}
{{- include "gmsa-tickets.refuse" (list (list (not (has $name $names)) (printf "prometheusRule.alerts has %q, which is no alert: there are %s" $name (join ", " $names)))) -}}
{{- end -}}
groups:
  {{- list (dict "name" $group.name "rules" $kept) | toYaml | nindent 2 }}
{{- end -}}
