{{/* Names end in at most -coordinator-headless, or -worker-POOL and a hash of the StatefulSet. */}}
{{- define "gimbal.fullname" -}}
{{- $name := .Values.fullnameOverride | default (ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) (contains .Chart.Name .Release.Name)) -}}
{{- $name | trunc 32 | trimSuffix "-" -}}
{{- end }}

{{/* selectorLabels: dict root component */}}
{{- define "gimbal.selectorLabels" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "gimbal.labels" -}}
{{ include "gimbal.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{/* image: dict root image what */}}
{{- define "gimbal.image" -}}
{{- $words := printf "%s.repository is not set: build the image from deploy/Containerfile, push it to a registry of yours and give --set %s.repository=REGISTRY/NAME" .what .what -}}
{{- printf "%s:%s" (required $words .image.repository) (.image.tag | default .root.Chart.AppVersion) | quote -}}
{{- end }}

{{/* The names of secrets, generated here or not. */}}
{{- define "gimbal.secret.coordinator" -}}
{{- if eq .Values.tls.mode "existing" -}}
{{- required "tls.existing.coordinator is not set: with tls.mode existing, name the secret with the coordinator's tls.crt, tls.key, ca.crt, worker-ca.crt, user-ca.crt and admin-ca.crt" .Values.tls.existing.coordinator -}}
{{- else -}}
{{- include "gimbal.fullname" . }}-tls-coordinator
{{- end -}}
{{- end }}

{{- define "gimbal.secret.worker" -}}
{{- if eq .Values.tls.mode "existing" -}}
{{- required "tls.existing.worker is not set: with tls.mode existing, name the secret with the workers' tls.crt, tls.key and ca.crt" .Values.tls.existing.worker -}}
{{- else -}}
{{- include "gimbal.fullname" . }}-tls-worker
{{- end -}}
{{- end }}

{{- define "gimbal.secret.join" -}}
{{- .Values.join.existingSecret | default (printf "%s-join" (include "gimbal.fullname" .)) -}}
{{- end }}

{{- define "gimbal.secret.metrics" -}}
{{- .Values.metrics.existingSecret | default (printf "%s-metrics" (include "gimbal.fullname" .)) -}}
{{- end }}

{{/* The "restricted" level of Pod Security. The group is what makes volumes writable. */}}
{{- define "gimbal.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "gimbal.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* Keys: a mounted secret belongs to root, and fsGroup makes it readable by the group, which the
daemons refuse in a key. So they are copied, to a folder in memory and to files that only their
user may read. dict: root image component secrets */}}
{{- define "gimbal.keysContainer" -}}
- name: keys
  image: {{ .image }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  command: [/bin/sh, -ec]
  args:
    - |
      install -d -m 0700{{ range .secrets }} /run/gimbal/{{ . }}{{ end }} /var/lib/gimbal/{{ .component }}
      {{- range .secrets }}
      install -m 0400 /secrets/{{ . }}/* /run/gimbal/{{ . }}/
      {{- end }}
  resources:
    requests: {cpu: 10m, memory: 16Mi}
    limits: {memory: 64Mi}
  securityContext:
    {{- include "gimbal.containerSecurity" . | nindent 4 }}
  volumeMounts:
    {{- range .secrets }}
    - {name: {{ . }}, mountPath: /secrets/{{ . }}, readOnly: true}
    {{- end }}
    - {name: keys, mountPath: /run/gimbal}
    - {name: state, mountPath: /var/lib/gimbal}
{{- end }}

{{/* What every pod mounts and has, but its state. dict: config tls join joinKey */}}
{{- define "gimbal.volumeMounts" -}}
- {name: config, mountPath: /etc/gimbal, readOnly: true}
- {name: keys, mountPath: /run/gimbal, readOnly: true}
- {name: state, mountPath: /var/lib/gimbal}
- {name: tmp, mountPath: /tmp}
{{- end }}

{{- define "gimbal.volumes" -}}
- name: config
  configMap:
    name: {{ .config }}
- name: tls
  secret:
    secretName: {{ .tls }}
    defaultMode: 0400
- name: join
  secret:
    secretName: {{ .join }}
    defaultMode: 0400
    items: [{key: {{ .joinKey }}, path: {{ .joinKey }}}]
- name: keys
  emptyDir: {medium: Memory, sizeLimit: 1Mi}
- name: tmp
  emptyDir: {}
{{- end }}
