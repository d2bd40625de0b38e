{{/*
The CEL expressions that decide which requests reach the webhook. They are made in one place, so that each of them looks at
all four kinds of slots: the pod, its containers, init containers and ephemeral containers. They use `has()` instead of optional fields (`.?`), which
Kubernetes 1.28 does not have.
*/}}

{{/* The list of all slots of the pod spec SPEC. Containers of an invalid pod may be null: the API server refuses the pod. `dyn` allows slots of two types in one list. */}}
{{- define "gmsa-webhook.cel.slots" -}}
([dyn({{ . }})] + (has({{ . }}.containers) && dyn({{ . }}.containers) != null ? {{ . }}.containers : [])
  + (has({{ . }}.initContainers) ? {{ . }}.initContainers : []) + (has({{ . }}.ephemeralContainers) ? {{ . }}.ephemeralContainers : []))
{{- end -}}

{{/* Whether a slot of dict "spec" SPEC has Windows options for which "options" holds: an expression in which OPTIONS is their place. */}}
{{- define "gmsa-webhook.cel.slotWith" -}}
{{ include "gmsa-webhook.cel.slots" .spec }}
  .exists(s, has(s.securityContext) && has(s.securityContext.windowsOptions)
    && {{ .options | replace "OPTIONS" "s.securityContext.windowsOptions" }})
{{- end -}}

{{/* Whether a slot of the pod spec SPEC has a name or contents. */}}
{{- define "gmsa-webhook.cel.usesGmsa" -}}
{{- include "gmsa-webhook.cel.slotWith" (dict "spec" . "options" "(has(OPTIONS.gmsaCredentialSpecName) || has(OPTIONS.gmsaCredentialSpec))") -}}
{{- end -}}

{{/* A pod that uses GMSA, or used it before the update. There is no old object on CREATE. */}}
{{- define "gmsa-webhook.cel.pod" -}}
[object, oldObject].exists(pod, pod != null &&
  {{- include "gmsa-webhook.cel.usesGmsa" "pod.spec" | nindent 2 }})
{{- end -}}

{{/* Whether the metadata META have an annotation by which a Linux pod asks for tickets or a keytab. It gives no right. */}}
{{- define "gmsa-webhook.cel.asksForTickets" -}}
(has({{ . }}.annotations) && ['gmsa-webhook/tickets', 'gmsa-webhook/keytab'].exists(own, own in {{ . }}.annotations))
{{- end -}}

{{/* A new pod that asks for them. */}}
{{- define "gmsa-webhook.cel.asking" -}}
request.operation == 'CREATE' && {{ include "gmsa-webhook.cel.asksForTickets" "object.metadata" }}
{{- end -}}

{{/* The same without the sidecar. */}}
{{- define "gmsa-webhook.cel.uninjected" -}}
{{ include "gmsa-webhook.cel.asking" . }}
  && !(has(object.spec.initContainers) && object.spec.initContainers.exists(c, c.name == 'gmsa-tickets'))
{{- end -}}

{{/*
Whether the pod spec SPEC has a token for tickets or a keytab, injected or by hand. Without tickets.enabled these pods are not sent to the webhook: the broker, which
is the one to give them, asks for `use` and `export` itself.
*/}}
{{- define "gmsa-webhook.cel.hasTicketToken" -}}
(has({{ . }}.volumes) && {{ . }}.volumes.exists(v, has(v.projected) && has(v.projected.sources) && v.projected.sources.exists(s,
  has(s.serviceAccountToken) && has(s.serviceAccountToken.audience)
  && ['gmsa-tickets/', 'gmsa-keytab/'].exists(own, s.serviceAccountToken.audience.startsWith(own)))))
{{- end -}}

{{/* A pod with a name. */}}
{{- define "gmsa-webhook.cel.named" -}}
{{- include "gmsa-webhook.cel.slotWith" (dict "spec" "object.spec" "options" "has(OPTIONS.gmsaCredentialSpecName)") -}}
{{- end -}}

{{/* A pod with a name that nothing has filled in. */}}
{{- define "gmsa-webhook.cel.unexpanded" -}}
{{- include "gmsa-webhook.cel.slotWith" (dict "spec" "object.spec" "options" "has(OPTIONS.gmsaCredentialSpecName) && !has(OPTIONS.gmsaCredentialSpec)") -}}
{{- end -}}

{{/* An update of labels or finalizers alone must never wait for the webhook: that could block the end of a running pod. */}}
{{- define "gmsa-webhook.cel.specChanges" -}}
request.operation == 'CREATE' || object.spec != oldObject.spec
{{- end -}}

{{/* A workload whose pods use GMSA or ask for tickets or a keytab, which is a warning where they are not enabled: a CronJob has its pod template in a job template. */}}
{{- define "gmsa-webhook.cel.workload" -}}
[has(object.spec.jobTemplate) ? object.spec.jobTemplate.spec : object.spec]
  .exists(workload, has(workload.template) && ([workload.template.spec].exists(spec,
    {{- include "gmsa-webhook.cel.usesGmsa" "spec" | nindent 4 }})
    || has(workload.template.metadata) && {{ include "gmsa-webhook.cel.asksForTickets" "workload.template.metadata" }}
    {{- if .Values.tickets.enabled }}
    || {{ include "gmsa-webhook.cel.hasTicketToken" "workload.template.spec" }}
    {{- end }}))
{{- end -}}

{{/* A workload without a controller: a Deployment, not its ReplicaSet. */}}
{{- define "gmsa-webhook.cel.uncontrolled" -}}
!(has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(owner, has(owner.controller) && owner.controller))
{{- end -}}

{{/*
Whether the user is an administrator of the release, for policies in files of the control plane. A user with the name of a group does not count: some
authenticators let users choose their names.
*/}}
{{- define "gmsa-webhook.cel.isAdmin" -}}
{{- with .Values.staticPolicies.admins -}}
(request.userInfo.username in {{ toJson .users }} || request.userInfo.?groups.orValue([]).exists(group, group in {{ toJson .groups }}))
{{- end -}}
{{- end -}}

{{/* The end of such a policy's message, as a text of CEL. */}}
{{- define "gmsa-webhook.onlyAdmins" -}}
': only the administrators that the static policies of the control plane name may'
{{- end -}}

{{/* Whether two objects are equal except for some keys. Takes a dict: "one" EXPRESSION, "other" EXPRESSION, "but" LIST. Unknown keys are compared too. */}}
{{- define "gmsa-webhook.cel.same" -}}
{{- $but := toJson .but -}}
{{ .one }}.all(key, key in {{ $but }} || (key in {{ .other }} && {{ .one }}[key] == {{ .other }}[key]))
&& {{ .other }}.all(key, key in {{ $but }} || key in {{ .one }})
{{- end -}}
