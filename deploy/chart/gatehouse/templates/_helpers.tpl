{{- define "gatehouse.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end }}

{{- define "gatehouse.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "gatehouse.name" . -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "gatehouse.selector" -}}
app.kubernetes.io/name: {{ include "gatehouse.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "gatehouse.labels" -}}
{{ include "gatehouse.selector" . }}
app.kubernetes.io/component: gate
{{ include "gatehouse.release" . }}
{{- end }}

{{- /* With split: no selector of the gate's may match the controllers' pods. */ -}}
{{- define "gatehouse.controllers.selector" -}}
app.kubernetes.io/name: {{ include "gatehouse.name" . }}-controllers
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "gatehouse.controllers.labels" -}}
{{ include "gatehouse.controllers.selector" . }}
app.kubernetes.io/component: controllers
{{ include "gatehouse.release" . }}
{{- end }}

{{- /* With split, what the pods of both Deployments have in common. */ -}}
{{- define "gatehouse.common" -}}
app.kubernetes.io/part-of: {{ include "gatehouse.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "gatehouse.release" -}}
{{- if .Values.split -}}
app.kubernetes.io/part-of: {{ include "gatehouse.name" . }}
{{ end -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "gatehouse.image" -}}
{{- with .Values.image -}}
{{- if not .repository -}}
{{- fail "image.repository is not set: install the chart of a release, which names its image, or build an image, push it and set image.repository=registry.example.org/gatehouse (docs/installing.md)" -}}
{{- end -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ default $.Chart.AppVersion .tag }}{{ end -}}
{{- end -}}
{{- end }}

{{- define "gatehouse.authoritySecret" -}}
{{- default (printf "%s-ca" (include "gatehouse.fullname" .)) .Values.certificates.secretName -}}
{{- end }}

{{- define "gatehouse.tlsSecret" -}}
{{- default (printf "%s-tls" (include "gatehouse.fullname" .)) .Values.certificates.secretName -}}
{{- end }}

{{- define "gatehouse.priorityClassName" -}}
{{- default (ternary (include "gatehouse.fullname" .) "" .Values.priorityClass.create) .Values.priorityClass.name -}}
{{- end }}

{{- /* Whether there is a ClusterRole: "true" or nothing. */ -}}
{{- define "gatehouse.hasClusterRole" -}}
{{- if or (eq .Values.installedBy "gatehouse") (not .Values.watchNamespaces) -}}true{{- end -}}
{{- end }}

{{- /* Whether the gate has one, to which what it installs belongs: "true" or nothing. */ -}}
{{- define "gatehouse.gate.hasClusterRole" -}}
{{- if include "gatehouse.hasClusterRole" . }}{{ if or (eq .Values.installedBy "gatehouse") (not .Values.split) }}true{{ end }}{{ end -}}
{{- end }}

{{- /* Who reconciles, by ServiceAccount and by the names of what is granted to it. */ -}}
{{- define "gatehouse.controllers.name" -}}
{{ include "gatehouse.fullname" . }}{{ if .Values.split }}-controllers{{ end }}
{{- end }}

{{- define "gatehouse.subject" -}}
- kind: ServiceAccount
  name: {{ include "gatehouse.fullname" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}

{{- define "gatehouse.controllers.subject" -}}
- kind: ServiceAccount
  name: {{ include "gatehouse.controllers.name" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}
