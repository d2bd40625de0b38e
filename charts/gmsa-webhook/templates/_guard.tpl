{{/*
The guard: policies by which the API server itself enforces what the webhook decides about rights. One template makes both the objects and the files of a
control plane.
*/}}

{{/* The name of a policy and of its binding. Takes a dict: "root" CONTEXT, "name" NAME, and "static" true for a file of the control plane, whose names must have this suffix. */}}
{{- define "gmsa-webhook.policyName" -}}
{{ include "gmsa-webhook.fullname" .root }}-{{ .name }}{{ if .static }}.static.k8s.io{{ end }}
{{- end -}}

{{/* The metadata of such an object. Takes the same dict. */}}
{{- define "gmsa-webhook.policyMetadata" -}}
{{- $name := include "gmsa-webhook.policyName" . -}}
{{- if .static -}}
name: {{ $name }}
annotations:
  # Argo CD leaves it out: it is a file of the control plane, and no API server takes an object of this name.
  argocd.argoproj.io/hook: Skip
{{- else -}}
{{ include "gmsa-webhook.metadata" (dict "root" .root "name" $name "cluster" true) }}
{{- end -}}
{{- end -}}

{{/*
The binding of a policy. Takes the same dict and "actions" LIST, what a violation leads to. Where "pods" is true, a second binding warns in the namespaces of a trial.
*/}}
{{- define "gmsa-webhook.policyBinding" -}}
{{- $trial := and .pods (has "Deny" .actions) .root.Values.webhooks.warnNamespaces -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  {{- include "gmsa-webhook.policyMetadata" . | nindent 2 }}
spec:
  policyName: {{ include "gmsa-webhook.policyName" . }}
  validationActions: {{ toJson .actions }}
  {{- with $trial }}
  matchResources:
    namespaceSelector:
      matchExpressions:
        - {key: kubernetes.io/metadata.name, operator: NotIn, values: {{ toJson . }}}
  {{- end }}
{{- with $trial }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  {{- include "gmsa-webhook.policyMetadata" (dict "root" $.root "static" $.static "name" (printf "%s-trial" $.name)) | nindent 2 }}
spec:
  policyName: {{ include "gmsa-webhook.policyName" $ }}
  validationActions: [Warn, Audit]
  matchResources:
    namespaceSelector:
      matchExpressions:
        - {key: kubernetes.io/metadata.name, operator: In, values: {{ toJson . }}}
{{- end }}
{{- end -}}

{{/* Takes a dict: "root" CONTEXT, and "static" true for files of the control plane. */}}
{{- define "gmsa-webhook.guard" -}}
{{- $root := .root -}}
{{- $static := .static -}}
{{- $actions := .root.Values.guard.validationActions -}}
{{- /* The webhook's limit; tests/chart compares them. Each right is one access check, and the cost limit of a policy allows 28. */ -}}
{{- $rights := 24 -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  {{- include "gmsa-webhook.policyMetadata" (dict "root" $root "static" $static "name" "guard") | nindent 2 }}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - operations: [CREATE]
        apiGroups: [""]
        apiVersions: ["*"]
        resources: [pods]
        scope: Namespaced
      - operations: [UPDATE]
        apiGroups: [""]
        apiVersions: ["*"]
        resources: [pods/ephemeralcontainers]
        scope: Namespaced
  matchConditions:
    - name: uses-gmsa
      expression: |-
        {{- include "gmsa-webhook.cel.usesGmsa" "object.spec" | nindent 8 }}
          || {{ include "gmsa-webhook.cel.hasTicketToken" "object.spec" | nindent 10 | trim }}
  variables:
    # An update can add ephemeral containers alone. The rest was judged when the pod was created.
    - name: slots
      expression: |-
        request.operation == 'CREATE' ?
          {{- include "gmsa-webhook.cel.slots" "object.spec" | nindent 10 }}
          : object.spec.?ephemeralContainers.orValue([]).filter(e,
              !oldObject.spec.?ephemeralContainers.orValue([]).exists(old, old.name == e.name))
    - name: named
      expression: |-
        variables.slots.filter(s, s.?securityContext.?windowsOptions.?gmsaCredentialSpecName.hasValue())
    - name: serviceAccount
      expression: |-
        object.spec.?serviceAccountName.orValue('') == '' ? 'default' : object.spec.serviceAccountName
    # The audiences of all projected tokens. CEL makes one list of many only by way of a text; no name of a credential spec has a line's end.
    - name: audiences
      expression: |-
        object.spec.?volumes.orValue([]).map(v, v.?projected.?sources.orValue([])
          .map(s, s.?serviceAccountToken.?audience.orValue('')).join('\n')).join('\n').split('\n')
    # A right is a verb and the name of a credential spec. A token asks for it by its audience, injected or by hand.
    - name: ofTokens
      expression: |-
        variables.audiences.map(a, a.startsWith('gmsa-tickets/'), ['use', a.substring(13)])
          + variables.audiences.map(a, a.startsWith('gmsa-keytab/'), ['export', a.substring(12)])
    - name: added
      expression: |-
        variables.named.map(s, ['use', string(s.securityContext.windowsOptions.gmsaCredentialSpecName)])
          + (request.operation == 'CREATE' ? variables.ofTokens : [])
    # rights0 has all rights that the pod needs, rights1 has those that differ from rights0[0], and so on: the first items are the distinct rights.
    - name: rights0
      expression: |-
        {{- include "gmsa-webhook.cel.slots" "object.spec" | nindent 8 }}
          .filter(s, s.?securityContext.?windowsOptions.?gmsaCredentialSpecName.hasValue())
          .map(s, ['use', string(s.securityContext.windowsOptions.gmsaCredentialSpecName)]) + variables.ofTokens
    {{- range $index := until $rights }}
    - name: rights{{ add1 $index }}
      expression: variables.rights{{ $index }}.filter(right, right != variables.rights{{ $index }}[0])
    {{- end }}
  validations:
    - expression: |-
        variables.slots.all(s, !s.?securityContext.?windowsOptions.?gmsaCredentialSpec.hasValue()
          || s.?securityContext.?windowsOptions.?gmsaCredentialSpecName.hasValue())
      message: GMSA cred spec contents are set without the name of their cred spec
      reason: Invalid
    - expression: |-
        variables.named.all(s, s.securityContext.windowsOptions.?gmsaCredentialSpec.hasValue())
      message: a GMSA cred spec name has no contents, so the container would start without its identity; the mutating webhook did not run, or another one added the name after it
      reason: Invalid
    - expression: variables.rights{{ $rights }}.size() == 0
      message: more than {{ $rights }} different GMSA cred specs in one pod
      reason: Invalid
    # One validation for each right: an expression for all of them would exceed the cost limit.
    {{- range $index := until $rights }}
    - expression: |-
        variables.rights{{ $index }}.size() == 0 || !(variables.rights{{ $index }}[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.rights{{ $index }}[0][1])
            .check(variables.rights{{ $index }}[0][0]).allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `' + variables.rights{{ $index }}[0][0]
          + '` GMSA cred spec "' + variables.rights{{ $index }}[0][1] + '"'
      reason: Forbidden
    {{- end }}
---
{{ include "gmsa-webhook.policyBinding" (dict "root" $root "static" $static "name" "guard" "actions" $actions "pods" true) }}
{{- with $root.Values.webhooks.optOutLabel }}
---
# The label excludes pods from the webhooks, so setting it needs the right to change the webhooks.
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  {{- include "gmsa-webhook.policyMetadata" (dict "root" $root "static" $static "name" "guard-opt-out") | nindent 2 }}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - operations: [CREATE, UPDATE]
        apiGroups: [""]
        apiVersions: ["*"]
        resources: [namespaces, namespaces/status, namespaces/finalize]
        scope: Cluster
  matchConditions:
    - name: label-changes
      expression: |-
        object.metadata.?labels['{{ . }}'].orValue('')
          != (oldObject == null ? '' : oldObject.metadata.?labels['{{ . }}'].orValue(''))
  validations:
    {{- if $static }}
    - expression: |-
        {{- include "gmsa-webhook.cel.isAdmin" $root | nindent 8 }}
      messageExpression: |-
        'the label {{ . }} takes pods out of the GMSA webhook' + {{ include "gmsa-webhook.onlyAdmins" $root }} + ' change it'
    {{- else }}
    - expression: |-
        authorizer.group('admissionregistration.k8s.io').resource('validatingwebhookconfigurations').name('{{ include "gmsa-webhook.fullname" $root }}')
          .check('update').allowed()
      message: the label {{ . }} takes pods out of the GMSA webhook, so only those who may update the ValidatingWebhookConfiguration {{ include "gmsa-webhook.fullname" $root }} may change it
    {{- end }}
      reason: Forbidden
---
{{ include "gmsa-webhook.policyBinding" (dict "root" $root "static" $static "name" "guard-opt-out" "actions" $actions) }}
{{- end }}
{{- end -}}
