{{/*
The CEL expressions that decide which requests reach the webhook. They are made in one place, so that each of them looks at
all four kinds of slots: the pod, its containers, init containers and ephemeral containers.
*/}}

{{/* The list of all slots of the pod spec SPEC. An invalid pod may have null for its containers: refusing it is not our part. */}}
{{- define "gmsa-webhook.cel.slots" -}}
([{{ . }}] + optional.ofNonZeroValue({{ . }}.?containers.orValue([])).orValue([])
  + {{ . }}.?initContainers.orValue([]) + {{ . }}.?ephemeralContainers.orValue([]))
{{- end -}}

{{/* Whether a slot of the pod spec SPEC has a name or contents. */}}
{{- define "gmsa-webhook.cel.usesGmsa" -}}
{{ include "gmsa-webhook.cel.slots" . }}
  .exists(s, s.?securityContext.?windowsOptions.?gmsaCredentialSpecName.hasValue()
    || s.?securityContext.?windowsOptions.?gmsaCredentialSpec.hasValue())
{{- end -}}

{{/* A pod that uses GMSA, or used it before the update. There is no old object on CREATE. */}}
{{- define "gmsa-webhook.cel.pod" -}}
[object, oldObject].exists(pod, pod != null &&
  {{- include "gmsa-webhook.cel.usesGmsa" "pod.spec" | nindent 2 }})
{{- end -}}

{{/* A pod with a name. */}}
{{- define "gmsa-webhook.cel.named" -}}
{{ include "gmsa-webhook.cel.slots" "object.spec" }}
  .exists(s, s.?securityContext.?windowsOptions.?gmsaCredentialSpecName.hasValue())
{{- end -}}

{{/* A pod with a name that nothing has filled in. */}}
{{- define "gmsa-webhook.cel.unexpanded" -}}
{{ include "gmsa-webhook.cel.slots" "object.spec" }}
  .exists(s, s.?securityContext.?windowsOptions.?gmsaCredentialSpecName.hasValue()
    && !s.?securityContext.?windowsOptions.?gmsaCredentialSpec.hasValue())
{{- end -}}

{{/* An update that leaves the spec alone (labels, finalizers) must never wait for the webhook: it could block a running pod's end. */}}
{{- define "gmsa-webhook.cel.specChanges" -}}
request.operation == 'CREATE' || object.spec != oldObject.spec
{{- end -}}

{{/* A workload whose pods use GMSA: a CronJob has its pod template in a job template. */}}
{{- define "gmsa-webhook.cel.workload" -}}
[object.spec.?jobTemplate.?spec.?template.?spec.or(object.spec.?template.?spec).orValue({})]
  .exists(spec,
    {{- include "gmsa-webhook.cel.usesGmsa" "spec" | nindent 4 }})
{{- end -}}

{{/* A workload that somebody made, not a controller: a Deployment, not its ReplicaSet. */}}
{{- define "gmsa-webhook.cel.uncontrolled" -}}
!object.metadata.?ownerReferences.orValue([]).exists(owner, owner.?controller.orValue(false))
{{- end -}}

{{/*
Whether the one who asks is an administrator of the release, where its policies are files of the control plane. A user with the name of a group is
none: who authenticates users may let them choose their names.
*/}}
{{- define "gmsa-webhook.cel.isAdmin" -}}
{{- with .Values.staticPolicies.admins -}}
(request.userInfo.username in {{ toJson .users }} || request.userInfo.?groups.orValue([]).exists(group, group in {{ toJson .groups }}))
{{- end -}}
{{- end -}}

{{/* What a refusal by such a policy ends with, as a text of CEL. */}}
{{- define "gmsa-webhook.onlyAdmins" -}}
': only the administrators that the static policies of the control plane name may'
{{- end -}}

{{/* Whether two objects are the same but for some keys, of dict "one" EXPRESSION "other" EXPRESSION "but" LIST. A key that is not known yet counts. */}}
{{- define "gmsa-webhook.cel.same" -}}
{{- $but := toJson .but -}}
{{ .one }}.all(key, key in {{ $but }} || (key in {{ .other }} && {{ .one }}[key] == {{ .other }}[key]))
&& {{ .other }}.all(key, key in {{ $but }} || key in {{ .one }})
{{- end -}}
