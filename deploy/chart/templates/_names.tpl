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
{{- with .Values.hub.goAgents.plaintext }}
plaintext: {{ . }}
{{- end }}
metrics: 8000
health: 8003
{{- else -}}
metrics: 8181
health: 8001
{{- end -}}
{{- end -}}

{{- /* Kinds as settings name them. */ -}}
{{- define "bowline.kinds" -}}
{{- $kinds := list -}}
{{- range . -}}
{{- $kinds = append $kinds (printf "%s/%s" (.group | default "core") .kind) -}}
{{- end -}}
{{- $kinds | toYaml -}}
{{- end -}}

{{- /* What a hub makes of its part of the values. Empty means not set. */ -}}
{{- define "bowline.settings.hub" -}}
{{- $hub := .Values.hub -}}
{{- $at := printf "%s.%s.svc" (include "bowline.name" .) .Release.Namespace -}}
{{- $api := printf "%s-api.%s.svc" (include "bowline.name" .) .Release.Namespace -}}
{{- $plane := dict
      "reach" "in-cluster"
      "namespace" .Values.argocd.namespace
      "mapping" $hub.mapping
      "namespaces" $hub.namespaces
      "create-namespaces" $hub.createNamespaces -}}
{{- with $hub.selector }}{{ $_ := set $plane "selector" . }}{{ end -}}
{{- with $hub.namespacePattern }}{{ $_ := set $plane "namespace-pattern" . }}{{ end -}}
{{- with $hub.namespaceLabels }}{{ $_ := set $plane "namespace-labels" . }}{{ end -}}
{{- with $hub.kinds }}{{ $_ := set $plane "kinds" (include "bowline.kinds" . | fromYamlArray) }}{{ end -}}
{{- with $hub.clusterSecrets -}}
{{- if .proxy -}}
{{- $secrets := dict "proxy" .proxy "made" .made -}}
{{- with .credentials }}{{ $_ := set $secrets "credentials" . }}{{ end -}}
{{- $_ := set $plane "cluster-secrets" $secrets -}}
{{- end -}}
{{- end -}}
{{- $settings := dict "profile" "cluster" "san" (concat $hub.names (list $at $api)) "control-plane" $plane -}}
{{- with $hub.goAgents -}}
{{- if .auth -}}
{{- $auth := ternary "userpass:/etc/bowline/go-agents/users" .auth (eq .auth "userpass") -}}
{{- $go := dict
      "auth" $auth
      "websocket" .websocket
      "certificate" .certificate
      "blocklist" .blocklist
      "newcomers" .newcomers -}}
{{- with .tokenLife }}{{ $_ := set $go "token-life" . }}{{ end -}}
{{- with .proof }}{{ $_ := set $go "proof" . }}{{ end -}}
{{- with .keySecret }}{{ $_ := set $go "key-secret" . }}{{ end -}}
{{- with .plaintext }}{{ $_ := set $go "plaintext" (printf ":%v" .) }}{{ end -}}
{{- $_ := set $settings "go-agents" $go -}}
{{- end -}}
{{- end -}}
{{- $settings | toYaml -}}
{{- end -}}

{{- /* What an agent makes of its part of the values. */ -}}
{{- define "bowline.settings.agent" -}}
{{- $agent := .Values.agent -}}
{{- $cluster := dict
      "reach" "in-cluster"
      "namespace" .Values.argocd.namespace
      "namespaces" $agent.namespaces
      "create-namespaces" $agent.createNamespaces
      "kinds" (include "bowline.kinds" (include "bowline.agent.kinds" . | fromYamlArray) | fromYamlArray)
      "adoption" $agent.adoption
      "mismatch" $agent.mismatch
      "recreation" $agent.recreation -}}
{{- with $agent.selector }}{{ $_ := set $cluster "selector" . }}{{ end -}}
{{- $settings := dict "profile" "cluster" "kubernetes" $cluster -}}
{{- if not $agent.principal.address -}}
{{- $_ := set $settings "join" "/etc/bowline/join/token" -}}
{{- with $agent.hub }}{{ $_ := set $settings "hub" . }}{{ end -}}
{{- else -}}
{{- with $agent.principal.proof }}{{ $_ := set $settings "go-principal" (dict "proof" .) }}{{ end -}}
{{- end -}}
{{- $settings | toYaml -}}
{{- end -}}

{{- /* What the role reads with --config. */ -}}
{{- define "bowline.settings" -}}
{{- $settings := include (printf "bowline.settings.%s" .Values.role) . | fromYaml -}}
{{- mergeOverwrite $settings .Values.settings | toYaml -}}
{{- end -}}

{{- /* Values that do not go together. */ -}}
{{- define "bowline.sound" -}}
{{- $go := .Values.hub.goAgents -}}
{{- if eq .Values.role "hub" -}}
{{- if and (hasPrefix "header:" $go.auth) (not $go.plaintext) -}}
{{- fail "hub.goAgents.auth: names by header are taken without TLS only: set hub.goAgents.plaintext to a port" -}}
{{- end -}}
{{- if and (hasPrefix "mtls:" $go.auth) $go.plaintext -}}
{{- fail "hub.goAgents.plaintext: there are no certificates without TLS: take auth userpass or header" -}}
{{- end -}}
{{- with .Values.hub.clusterSecrets -}}
{{- if and .proxy (not .credentials) (not $go.auth) -}}
{{- fail "hub.clusterSecrets.proxy: there is nothing to show there: set credentials, or hub.goAgents.auth" -}}
{{- end -}}
{{- end -}}
{{- else -}}
{{- with .Values.agent -}}
{{- if and .createNamespaces (not (regexMatch "[*?[{]" (join " " .namespaces))) -}}
{{- fail "agent.createNamespaces takes a pattern in agent.namespaces: no right can be granted in a namespace that is not there yet" -}}
{{- end -}}
{{- if and (eq .principal.mapping "destination") (eq .principal.mode "autonomous") -}}
{{- fail "agent.principal.mapping: destination is for managed agents" -}}
{{- end -}}
{{- if and .principal.plaintext (eq .principal.auth "mtls") -}}
{{- fail "agent.principal.plaintext: there are no certificates without TLS: take auth userpass or header" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* The arguments of the program. */ -}}
{{- define "bowline.arguments" -}}
- {{ .Values.role }}
- --config=/etc/bowline/settings.yaml
{{- if eq .Values.role "hub" }}
{{- with .Values.hub.goAgents }}
{{- if and .auth .ca }}
- --with-ca=/etc/bowline/ca
{{- end }}
{{- end }}
{{- else if .Values.agent.principal.address }}
{{- with .Values.agent.principal }}
- --compat
- {{ printf "--server-address=%s" .address | quote }}
- --server-port={{ .port }}
- --agent-mode={{ .mode | required "agent.principal.mode is needed: managed or autonomous" }}
- "--creds={{ ternary "userpass:/etc/bowline/principal/user" (printf "%s:" .auth) (eq .auth "userpass") }}"
{{- if .plaintext }}
- --insecure-plaintext
{{- else }}
- --root-ca-path=/etc/bowline/principal-ca/ca.crt
- --tls-client-cert=/etc/bowline/certificate/tls.crt
- --tls-client-key=/etc/bowline/certificate/tls.key
{{- end }}
{{- if eq .mapping "destination" }}
- --destination-based-mapping
{{- end }}
{{- if .websocket }}
- --enable-websocket
{{- end }}
{{- if .compression }}
- --enable-compression
{{- end }}
- --heartbeat-interval={{ .heartbeat }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* Secrets that the role reads as files, by the name of the folder: secret, items, optional. */ -}}
{{- define "bowline.mounts" -}}
{{- if eq .Values.role "hub" }}
{{- with .Values.hub.goAgents }}
{{- if eq .auth "userpass" }}
go-agents: {secret: {{ .users.secret }}, items: [{key: {{ .users.key }}, path: users}]}
{{- end }}
{{- if and .auth .ca }}
ca: {secret: {{ .ca }}, items: [{key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}]}
{{- end }}
{{- end }}
{{- else if .Values.agent.principal.address }}
{{- with .Values.agent.principal }}
{{- if eq .auth "userpass" }}
principal: {secret: {{ .user.secret }}, items: [{key: {{ .user.key }}, path: user}]}
{{- end }}
{{- if not .plaintext }}
principal-ca: {secret: {{ .ca }}, items: [{key: ca.crt, path: ca.crt}]}
certificate: {secret: {{ .certificate }}, items: [{key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}]}
{{- end }}
{{- end }}
{{- else }}
{{- with .Values.agent.join }}
join: {secret: {{ .secret }}, optional: true, items: [{key: {{ .key }}, path: token}]}
{{- end }}
{{- end }}
{{- end -}}
