{{/* The worker's settings: dict root pool */}}
{{- define "gimbal.workerConfig" -}}
coordinator: tls+tcp://{{ include "gimbal.fullname" .root }}-coordinator.{{ .root.Release.Namespace }}.svc:7070
state: /var/lib/gimbal/worker
tls: /run/gimbal/tls
join: /run/gimbal/join/token
{{- if not .pool.gpuCount }}
devices: {{ .pool.devices }}
{{- end }}
{{- with .pool.memory }}
memory: {{ . }}
{{- end }}
log_level: {{ .pool.logLevel }}
{{- end }}
