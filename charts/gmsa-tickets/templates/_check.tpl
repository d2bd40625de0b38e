{{/*
What the schema cannot say, and what would be an outage or a leak. Every message begins with `values: NAME` and names the way out.
*/}}
{{- define "gmsa-tickets.check" -}}
{{- range list "Names" "Image" "Memory" "Cidrs" "Alerts" "Values" }}{{ include (printf "gmsa-tickets.check%s" .) $ }}{{ end -}}
{{- end -}}

{{- define "gmsa-tickets.checkValues" -}}
{{- $namespace := .Release.Namespace -}}
{{- $refused := list
  (list (has $namespace (list "default" "kube-system" "kube-public" "kube-node-lease")) (printf "--namespace is %s: the pods hold a password of the domain, so install into a namespace of their own, with --namespace gmsa-tickets --create-namespace" $namespace))
  (list (include "gmsa-tickets.hasOtherPrograms" . | eq "true") (printf "--namespace is %s, where the webhook runs: its administrators could read the password of the domain's user. Install into a namespace of its own, with --namespace gmsa-tickets --create-namespace" $namespace))
  (list (not .Values.domains) "domains is empty: name a domain, its user and the Secret with the user's password")
  (list (eq (int .Values.containerPort) (int .Values.adminPort)) (printf "containerPort and adminPort are both %d: they need different ports" (int .Values.adminPort)))
  (list (not (regexMatch "^[a-z]([a-z0-9-]{0,51}[a-z0-9])?$" (include "gmsa-tickets.fullname" .))) (printf "fullnameOverride: the name of all objects %q is not a DNS label of at most 53 characters, which starts with a letter and has no dots: set fullnameOverride" (include "gmsa-tickets.fullname" .)))
-}}
{{- $names := dict -}}
{{- range $index, $domain := .Values.domains -}}
{{- $path := printf "domains[%d]" $index -}}
{{- $secret := dig "passwordSecret" "name" "" $domain -}}
{{- $name := lower $domain.name -}}
{{- $ca := $domain.ca | default "" -}}
{{- $refused = concat $refused (list
  (list (not (regexMatch "^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$" $domain.name)) (printf "%s.name %q is not a domain's DNS name, such as corp.example.com" $path $domain.name))
  (list (hasKey $names $name) (printf "%s.name %q is that of %s too: remove one of them" $path $domain.name (get $names $name)))
  (list (not (regexMatch "^[^@\\\\\\s]+(@[^@\\\\\\s]+)$|^[^@\\\\\\s]+\\\\[^@\\\\\\s]+$" $domain.user)) (printf "%s.user %q is not NAME@DOMAIN or DOMAIN\\NAME" $path $domain.user))
  (list (eq (empty $secret) (empty $domain.passwordFile)) (printf "%s: set passwordSecret.name or passwordFile, and only one of them" $path))
  (list (eq (empty $ca) (empty $domain.caConfigMap)) (printf "%s: set caConfigMap or ca, and only one of them: the broker trusts no other authority. Helm keeps no file of --set-file for the next upgrade: caConfigMap outlives it" $path))
  (list (and $ca (not (contains "-----BEGIN CERTIFICATE-----" $ca))) (printf "%s.ca holds no certificate: it must be CA certificates in PEM" $path))
  (list (contains "PRIVATE KEY" $ca) (printf "%s.ca holds a private key: give the certificates alone" $path))
) -}}
{{- range $domain.accounts -}}
{{- $refused = append $refused (list (not (regexMatch "^[A-Za-z0-9]([A-Za-z0-9._-]{0,13}[A-Za-z0-9])?$" .)) (printf "%s.accounts: %q is not a SAM name: at most 15 letters, digits and . _ -, without the trailing $ and without a domain" $path .)) -}}
{{- end -}}
{{- $_ := set $names $name $path -}}
{{- end -}}
{{- include "gmsa-tickets.refuse" $refused -}}
{{- end -}}

{{/* "true" where a release of the webhook is in the namespace, as far as Helm renders for a cluster. */}}
{{- define "gmsa-tickets.hasOtherPrograms" -}}
{{- $found := "" -}}
{{- range (lookup "apps/v1" "Deployment" .Release.Namespace "").items -}}
{{- if eq (dig "metadata" "labels" "app.kubernetes.io/name" "" .) "gmsa-webhook" }}{{ $found = "true" }}{{ end -}}
{{- end -}}
{{ $found }}
{{- end -}}
