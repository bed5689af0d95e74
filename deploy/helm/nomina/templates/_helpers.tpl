{{- define "nomina.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* Short enough for "-headless", and for the number of a pod. */}}
{{- define "nomina.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "nomina.headless" -}}
{{- include "nomina.fullname" . }}-headless
{{- end -}}

{{- define "nomina.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end -}}

{{- define "nomina.selector" -}}
app.kubernetes.io/name: {{ include "nomina.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "nomina.labels" -}}
{{ include "nomina.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end -}}

{{- define "nomina.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "nomina.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.name is needed when serviceAccount.create is false" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "nomina.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{/* "yes" if there is more than one node. */}}
{{- define "nomina.clustered" -}}
{{- if gt (int .Values.replicas) 1 -}}yes{{- end -}}
{{- end -}}

{{- define "nomina.secretName" -}}
{{- if and .Values.cluster.secret .Values.cluster.existingSecret -}}
{{- fail "cluster.secret and cluster.existingSecret are both given; give one of them" -}}
{{- else if .Values.cluster.existingSecret -}}
{{- .Values.cluster.existingSecret -}}
{{- else if not .Values.cluster.secret -}}
{{- fail "a cluster needs a secret that all nodes share: give cluster.existingSecret (the name of a Secret) or cluster.secret (32 characters or more, such as those that `openssl rand -hex 32` prints)" -}}
{{- else if lt (len .Values.cluster.secret) 32 -}}
{{- fail (printf "cluster.secret has %d characters; it must have 32 or more, such as those that `openssl rand -hex 32` prints" (len .Values.cluster.secret)) -}}
{{- else -}}
{{- include "nomina.fullname" . }}-cluster
{{- end -}}
{{- end -}}

{{/* The domain below which each pod has its name. */}}
{{- define "nomina.domain" -}}
{{- include "nomina.headless" . }}.{{ include "nomina.namespace" . }}.svc.{{ .Values.clusterDomain }}
{{- end -}}

{{/* Names of all nodes, as a list of JSON and so of TOML. */}}
{{- define "nomina.members" -}}
{{- $members := list -}}
{{- range $i := until (int .Values.replicas) -}}
{{- $members = append $members (printf "%s-%d.%s:%d" (include "nomina.fullname" $) $i (include "nomina.domain" $) (int $.Values.port)) -}}
{{- end -}}
{{- toJson $members -}}
{{- end -}}

{{/* nomina.toml. JSON's texts, numbers and lists of them are TOML's too. */}}
{{- define "nomina.toml" -}}
{{- $port := int .Values.port -}}
{{- range $name, $section := .Values.settings -}}
{{- range $key, $_ := $section -}}
{{- if or (eq $name "server") (and (eq $name "cluster") (has $key (list "advertise" "members" "members_file" "members_dns" "secret" "join_timeout" "tls_cert" "tls_key" "tls_ca"))) (and (eq $name "auth") (eq $key "mode")) (eq $name "log") -}}
{{- fail (printf "settings.%s.%s is set by other values of this chart (see its README)" $name $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $settings := dict
    "server" (dict
      "http" (printf "%s:%d" .Values.listen $port)
      "grpc" (printf "%s:%d" .Values.listen (add $port 1000))
      "peer" (printf "%s:%d" .Values.listen (add $port 1001))
      "data_dir" "/var/lib/nomina"
      "drain_timeout" (printf "%ds" (int .Values.drainSeconds)))
    "auth" (dict "mode" .Values.auth.mode)
    "log" (dict "level" .Values.log.level "format" .Values.log.format) -}}
{{- if include "nomina.clustered" . -}}
{{- $cluster := dict "join_timeout" .Values.cluster.joinTimeout -}}
{{- if eq .Values.cluster.membership "list" -}}
{{- $_ := set $cluster "members" (include "nomina.members" . | fromJsonArray) -}}
{{- else if eq .Values.cluster.membership "file" -}}
{{- $_ := set $cluster "members_file" "/etc/nomina/cluster.conf" -}}
{{- else -}}
{{- $_ := set $cluster "members_dns" (printf "_http._tcp.%s" (include "nomina.domain" .)) -}}
{{- end -}}
{{- if .Values.cluster.tlsSecret -}}
{{- $_ := set $cluster "tls_cert" "/etc/nomina-tls/tls.crt" -}}
{{- $_ := set $cluster "tls_key" "/etc/nomina-tls/tls.key" -}}
{{- $_ := set $cluster "tls_ca" "/etc/nomina-tls/ca.crt" -}}
{{- end -}}
{{- $_ := set $settings "cluster" $cluster -}}
{{- end -}}
{{- $settings = mergeOverwrite $settings (deepCopy .Values.settings) -}}
{{- range $name, $section := $settings }}
[{{ $name }}]
{{- range $key, $value := $section }}
{{- if and (kindIs "slice" $value) $value (kindIs "string" (first $value)) }}
{{ $key }} = [
{{- range $value }}
  {{ toJson . }},
{{- end }}
]
{{- else }}
{{ $key }} = {{ toJson $value }}
{{- end }}
{{- end }}
{{ end }}
{{- end -}}
