{{/*
The longer parts of the pod: arguments, environment, volumes, spread. The result is YAML, or empty.
*/}}

{{- define "gmsa-webhook.args" -}}
- serve
{{- if ne .Values.authorizationCacheTtl "10s" }}
- --authorization-cache-ttl={{ .Values.authorizationCacheTtl }}
{{- end }}
{{- $mode := include "gmsa-webhook.mode" . }}
{{- if eq $mode "self-managed" }}
- --self-managed-secret={{ include "gmsa-webhook.namespace" . }}/{{ include "gmsa-webhook.ownSecret" . }}
- --self-managed-service={{ include "gmsa-webhook.fullname" . }}.{{ include "gmsa-webhook.namespace" . }}
{{- end }}
{{- if include "gmsa-webhook.publishesCa" . }}
{{- if ne $mode "self-managed" }}
- --publish-ca=/tls/ca.crt
{{- end }}
{{- if include "gmsa-webhook.hasFirst" . }}
- --webhook-configuration=mutating/{{ include "gmsa-webhook.fullname" . }}
{{- end }}
- --webhook-configuration=validating/{{ include "gmsa-webhook.fullname" . }}
{{- if include "gmsa-webhook.hasLast" . }}
- --webhook-configuration=mutating/{{ include "gmsa-webhook.lastName" . }}
{{- end }}
{{- end }}
{{- if eq .Values.webhooks.enforcement "Warn" }}
- --enforcement=Warn
{{- end }}
{{- with .Values.webhooks.warnNamespaces }}
- {{ printf "--warn-namespaces=%s" (join "," .) | toYaml }}
{{- end }}
{{- if .Values.webhooks.credentialSpecs.strict }}
- --strict-credential-specs
{{- end }}
{{- if .Values.tickets.enabled }}
- {{ printf "--tickets-broker=%s" .Values.tickets.broker.name | toYaml }}
- {{ printf "--tickets-broker-address=%s" .Values.tickets.broker.address | toYaml }}
- --tickets-broker-ca=/tickets-ca/ca.crt
- {{ printf "--tickets-image=%s" (include "gmsa-webhook.imageOf" (dict "root" . "image" .Values.tickets.image)) | toYaml }}
- {{ printf "--tickets-sidecar=%s" (dict "resources" (include "gmsa-webhook.resources" .Values.tickets | fromYaml) "startupProbe" .Values.tickets.startupProbe "checkInterval" .Values.tickets.checkInterval | toJson) | toYaml }}
{{- end }}
{{- if .Values.clientCa.configMapName }}
- {{ printf "--client-ca=/client-ca/%s" .Values.clientCa.key | toYaml }}
{{- range .Values.clientCa.names }}
- {{ printf "--client-name=%s" . | toYaml }}
{{- end }}
{{- end }}
{{- range .Values.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end -}}

{{- define "gmsa-webhook.env" -}}
- name: HTTPS_PORT
  value: {{ int .Values.containerPort | quote }}
- name: ADMIN_LISTEN
  value: "[::]:{{ int .Values.adminPort }}"
{{- if ne .Values.logLevel "info" }}
- name: LOG_LEVEL
  value: {{ .Values.logLevel | toYaml }}
{{- end }}
- name: LOG_FORMAT
  value: {{ .Values.logFormat | toYaml }}
{{- if .Values.randomHostname }}
- name: RANDOM_HOSTNAME
  value: "true"
{{- end }}
{{- if ne (include "gmsa-webhook.mode" .) "self-managed" }}
- name: TLS_CRT
  value: /tls/tls.crt
- name: TLS_KEY
  value: /tls/tls.key
{{- end }}
{{- range $name, $value := dict "QPS" .Values.qps "BURST" .Values.burst }}
{{- if not (kindIs "invalid" $value) }}
- name: {{ $name | toYaml }}
  value: {{ $value | toString | quote }}
{{- end }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The ConfigMap with the CAs of the broker. */}}
{{- define "gmsa-webhook.ticketsCa" -}}
{{ .Values.tickets.broker.caConfigMap | default (printf "%s-tickets-ca" (include "gmsa-webhook.fullname" .)) }}
{{- end -}}

{{- define "gmsa-webhook.volumes" -}}
{{- if ne (include "gmsa-webhook.mode" .) "self-managed" }}
- name: tls
  secret:
    secretName: {{ include "gmsa-webhook.certificateSecret" . | toYaml }}
    items:
      {{- if include "gmsa-webhook.publishesCa" . }}
      - key: ca.crt
        path: ca.crt
      {{- end }}
      - key: tls.crt
        path: tls.crt
      - key: tls.key
        path: tls.key
{{- end }}
{{- if .Values.clientCa.configMapName }}
- name: client-ca
  configMap:
    name: {{ .Values.clientCa.configMapName | toYaml }}
{{- end }}
{{- if .Values.tickets.enabled }}
- name: tickets-ca
  configMap:
    name: {{ include "gmsa-webhook.ticketsCa" . | toYaml }}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "gmsa-webhook.volumeMounts" -}}
{{- if ne (include "gmsa-webhook.mode" .) "self-managed" }}
- name: tls
  mountPath: /tls
  readOnly: true
{{- end }}
{{- if .Values.clientCa.configMapName }}
- name: client-ca
  mountPath: /client-ca
  readOnly: true
{{- end }}
{{- if .Values.tickets.enabled }}
- name: tickets-ca
  mountPath: /tickets-ca
  readOnly: true
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The `resources` of a group of values, without the entries whose quantity is 0. */}}
{{- define "gmsa-webhook.resources" -}}
{{- $resources := deepCopy .resources -}}
{{- range $kind := list "requests" "limits" -}}
{{- $quantities := get $resources $kind | default dict -}}
{{- range $name, $quantity := deepCopy $quantities -}}
{{- if eq (toString $quantity) "0" }}{{ $_ := unset $quantities $name }}{{ end -}}
{{- end -}}
{{- if not $quantities }}{{ $_ := unset $resources $kind }}{{ end -}}
{{- end -}}
{{- with $resources }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{/*
The pod of a hook: the webhook's image, under the same restrictions. Takes a dict: "root" CONTEXT, "serviceAccount" NAME, "container" NAME, "restartPolicy" POLICY, "args" LIST.
*/}}
{{- define "gmsa-webhook.hookPod" -}}
{{- $values := .root.Values -}}
serviceAccountName: {{ .serviceAccount | toYaml }}
automountServiceAccountToken: true
enableServiceLinks: false
restartPolicy: {{ .restartPolicy }}
{{- with include "gmsa-webhook.pullSecrets" .root }}
{{ . }}
{{- end }}
nodeSelector:
  {{- merge (dict "kubernetes.io/os" "linux") $values.nodeSelector | toYaml | nindent 2 }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
containers:
  - name: {{ .container }}
    image: {{ include "gmsa-webhook.image" .root | quote }}
    imagePullPolicy: {{ $values.image.pullPolicy | default $values.image.imagePullPolicy }}
    args: {{ toJson .args }}
    {{- with include "gmsa-webhook.resources" .root.Values }}
    resources:
      {{- . | nindent 6 }}
    {{- end }}
    {{- with $values.securityContext }}
    securityContext:
      {{- toYaml . | nindent 6 }}
    {{- end }}
{{- end -}}

{{/*
The number of replicas. With an autoscaler it is the Deployment's current number: without the field, an upgrade that turns autoscaling on would remove the old
number, and the API server's default of 1 would hold until the autoscaler acts.
*/}}
{{- define "gmsa-webhook.replicas" -}}
{{- if not .Values.autoscaling.enabled -}}
{{ int .Values.replicaCount }}
{{- else -}}
{{- with include "gmsa-webhook.installed" . | fromYaml -}}
{{ int .spec.replicas }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Spreads pods over zones and nodes where possible; a pod always starts. A constraint without a selector gets the selector of these pods. */}}
{{- define "gmsa-webhook.spread" -}}
{{- $own := dict "matchLabels" (include "gmsa-webhook.selector" . | fromYaml) -}}
{{- range $constraint := .Values.topologySpreadConstraints }}
- {{ ternary (merge (dict "labelSelector" $own) (omit $constraint "labelSelector")) $constraint (kindIs "invalid" $constraint.labelSelector) | toYaml | nindent 2 | trim }}
{{- else -}}
{{- range $index, $key := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
- topologyKey: {{ $key }}
  maxSkew: 1
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- include "gmsa-webhook.selector" $ | nindent 6 }}
  {{- if semverCompare ">=1.27-0" $.Capabilities.KubeVersion.Version }}
  matchLabelKeys: [pod-template-hash]
  {{- end }}
{{- end }}
{{- end -}}
{{- end -}}

{{/* The pods' security context. For a low port it has the sysctl that lets an unprivileged user bind it. */}}
{{- define "gmsa-webhook.podSecurityContext" -}}
{{- $context := deepCopy (.Values.podSecurityContext | default dict) -}}
{{- $port := int .Values.containerPort -}}
{{- if lt $port 1024 -}}
{{- $sysctl := dict "name" "net.ipv4.ip_unprivileged_port_start" "value" (toString $port) -}}
{{- $_ := set $context "sysctls" (append (get $context "sysctls" | default list) $sysctl) -}}
{{- end -}}
{{ toYaml $context }}
{{- end -}}

{{/* With hostNetwork two pods cannot share a node's port, so an old one must go before a new one comes. */}}
{{- define "gmsa-webhook.updateStrategy" -}}
{{- if .Values.updateStrategy -}}
{{ toYaml .Values.updateStrategy }}
{{- else -}}
type: RollingUpdate
rollingUpdate:
  maxSurge: {{ ternary 0 1 .Values.hostNetwork }}
  maxUnavailable: {{ ternary 1 0 .Values.hostNetwork }}
{{- end -}}
{{- end -}}
