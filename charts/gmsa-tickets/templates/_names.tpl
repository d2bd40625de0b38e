{{/*
Refuses names that are no values of the chart, and names the value that is meant. Charts share no templates without a library chart, which each release would have to
carry: this file is written in gmsa-webhook, and `just generate` makes the copies in the other charts, with their names in the names of the templates.
*/}}

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
