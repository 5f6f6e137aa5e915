{{- define "purser.env" -}}
- name: DATABASE_URL
  valueFrom:
    secretKeyRef:
      name: {{ .Values.existingSecret.name | quote }}
      key: {{ .Values.existingSecret.databaseUrl | quote }}
{{- if .Values.existingSecret.keyEncryptionKey }}
- name: KEY_ENCRYPTION_KEY
  valueFrom:
    secretKeyRef:
      name: {{ .Values.existingSecret.name | quote }}
      key: {{ .Values.existingSecret.keyEncryptionKey | quote }}
{{- end }}
{{- range $name, $value := .Values.settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- range $index, $one := .Values.secretSettings }}
- name: {{ $one.name }}
  valueFrom:
    secretKeyRef:
      name: {{ $one.secret | quote }}
      key: {{ $one.key | quote }}
{{- end }}
{{- end }}

{{- define "purser.podSecurity" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
fsGroup: 1000
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "purser.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "purser.volumes" -}}
- name: tmp
  emptyDir: {}
{{- if .Values.filesClaim }}
- name: files
  persistentVolumeClaim:
    claimName: {{ .Values.filesClaim | quote }}
{{- end }}
{{- end }}

{{- define "purser.mounts" -}}
- name: tmp
  mountPath: /tmp
{{- if .Values.filesClaim }}
- name: files
  mountPath: /var/lib/purser
{{- end }}
{{- end }}
