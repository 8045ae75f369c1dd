{{- define "bowline.name" -}}
{{- .Values.name | default (printf "bowline-%s" .Values.role) -}}
{{- end -}}

{{- define "bowline.selector" -}}
app.kubernetes.io/name: bowline
app.kubernetes.io/component: {{ .Values.role }}
app.kubernetes.io/instance: {{ include "bowline.name" . }}
{{- end -}}

{{- define "bowline.labels" -}}
{{ include "bowline.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end -}}

{{- define "bowline.subject" -}}
- kind: ServiceAccount
  name: {{ include "bowline.name" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}

{{- /* The ports of the role, by name. */ -}}
{{- define "bowline.ports" -}}
{{- if eq .Values.role "hub" -}}
agents: 8443
api: 8080
metrics: 8000
health: 8003
{{- else -}}
metrics: 8181
health: 8001
{{- end -}}
{{- end -}}

{{- /* What the role reads with --config. */ -}}
{{- define "bowline.settings" -}}
{{- $settings := dict "profile" "cluster" -}}
{{- if eq .Values.role "hub" -}}
{{- $at := printf "%s.%s.svc" (include "bowline.name" .) .Release.Namespace -}}
{{- $api := printf "%s-api.%s.svc" (include "bowline.name" .) .Release.Namespace -}}
{{- $_ := set $settings "san" (concat .Values.hub.names (list $at $api)) -}}
{{- $_ := set $settings "control-plane" (dict
      "reach" "in-cluster"
      "namespace" .Values.argocd.namespace
      "mapping" .Values.hub.mapping
      "create-namespaces" .Values.hub.createNamespaces) -}}
{{- else -}}
{{- $kinds := list -}}
{{- range .Values.agent.kinds -}}
{{- $kinds = append $kinds (printf "%s/%s" (.group | default "core") .kind) -}}
{{- end -}}
{{- $_ := set $settings "join" "/etc/bowline/join/token" -}}
{{- with .Values.agent.hub -}}{{- $_ := set $settings "hub" . -}}{{- end -}}
{{- $_ := set $settings "kubernetes" (dict
      "reach" "in-cluster"
      "namespace" .Values.argocd.namespace
      "namespaces" .Values.agent.namespaces
      "kinds" $kinds
      "adoption" .Values.agent.adoption
      "mismatch" .Values.agent.mismatch) -}}
{{- end -}}
{{- mergeOverwrite $settings .Values.settings | toYaml -}}
{{- end -}}
