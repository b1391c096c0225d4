{{/* Labels of an object. */}}
{{- define "lissom.labels" -}}
app.kubernetes.io/part-of: lissom
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The image, and when to pull it. */}}
{{- define "lissom.image" -}}
image: {{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) }}
{{- with .Values.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
{{- end }}

{{- define "lissom.priorityClass" -}}
{{- if .Values.priorityClass.create -}}
{{ .Values.priorityClass.name | default "lissom-agent" }}
{{- else -}}
{{ .Values.priorityClass.name }}
{{- end -}}
{{- end }}

{{/* Whether this chart runs `lissom manager` in a DaemonSet. */}}
{{- define "lissom.managerRuns" -}}
{{- if has .Values.manager.mode (list "pod" "observe") }}true{{ end -}}
{{- end }}

{{/* Whether a manager shares CPUs, so that containers need its socket. */}}
{{- define "lissom.managerShares" -}}
{{- if has .Values.manager.mode (list "service" "pod") }}true{{ end -}}
{{- end }}
