//! `argocd-agent agent`.

use super::{
    Flag, NO_PPROF, NO_PROXY, NO_QUEUE, NO_REDIS, OWN_CIPHERS, OWN_DETAIL, OWN_PACE, OWN_TRACES,
    TLS13,
};

/// Its flags, in the order in which they are explained.
pub(in super::super) const AGENT: &[Flag] = &[
    Flag::text("server-address", "ARGOCD_AGENT_REMOTE_SERVER", "").does("the principal; needed"),
    Flag::number("server-port", "ARGOCD_AGENT_REMOTE_PORT", "443").does("the principal's port"),
    Flag::text("agent-mode", "ARGOCD_AGENT_MODE", "autonomous").does("managed or autonomous"),
    Flag::text("creds", "ARGOCD_AGENT_CREDS", "").does(
        "how the agent says who it is: `mtls:ANY`, `userpass:FILE` (a line `name:secret`), `header:`",
    ),
    Flag::text("namespace", "ARGOCD_AGENT_NAMESPACE", "argocd")
        .short('n')
        .does("the namespace of Argo CD and of the Secrets"),
    Flag::list("allowed-namespaces", "ARGOCD_AGENT_ALLOWED_NAMESPACES", "")
        .does("further namespaces with Applications"),
    Flag::text("root-ca-secret-name", "ARGOCD_AGENT_TLS_ROOT_CA_SECRET_NAME", "argocd-agent-ca")
        .does("the Secret with the CAs of the principal; read again when it changes"),
    Flag::text("root-ca-path", "ARGOCD_AGENT_TLS_ROOT_CA_PATH", "")
        .does("those CAs from a file; read again when it changes"),
    Flag::text("tls-secret-name", "ARGOCD_AGENT_TLS_SECRET_NAME", "argocd-agent-client-tls")
        .does("the Secret with the agent's certificate; read again when it changes"),
    Flag::text("tls-client-cert", "ARGOCD_AGENT_TLS_CLIENT_CERT_PATH", "")
        .does("that certificate from a file; read again when it changes"),
    Flag::text("tls-client-key", "ARGOCD_AGENT_TLS_CLIENT_KEY_PATH", "")
        .does("its key from a file"),
    Flag::on_off("insecure-tls", "ARGOCD_AGENT_TLS_INSECURE", "false")
        .does("takes any certificate for the principal's"),
    Flag::on_off("insecure-plaintext", "ARGOCD_AGENT_INSECURE_PLAINTEXT", "false").does("no TLS"),
    Flag::text("tls-min-version", "ARGOCD_AGENT_TLS_MIN_VERSION", "").nothing(TLS13),
    Flag::text("tls-max-version", "ARGOCD_AGENT_TLS_MAX_VERSION", "").nothing(TLS13),
    Flag::list("tls-ciphersuites", "ARGOCD_AGENT_TLS_CIPHERSUITES", "").nothing(OWN_CIPHERS),
    Flag::on_off("enable-websocket", "ARGOCD_AGENT_ENABLE_WEBSOCKET", "false")
        .does("gRPC over WebSocket"),
    Flag::on_off("enable-compression", "ARGOCD_AGENT_ENABLE_COMPRESSION", "false")
        .does("compresses what is sent with gzip"),
    Flag::duration("keep-alive-ping-interval", "ARGOCD_AGENT_KEEP_ALIVE_PING_INTERVAL", "0s")
        .does("asks so often, below the calls, whether the principal is there; 0: never"),
    Flag::duration("heartbeat-interval", "ARGOCD_AGENT_HEARTBEAT_INTERVAL", "0s")
        .does("sends a heartbeat so often; 0: none"),
    Flag::number("metrics-port", "ARGOCD_AGENT_METRICS_PORT", "8181")
        .does("`/metrics` on every address; 0: off"),
    Flag::number("healthz-port", "ARGOCD_AGENT_HEALTH_CHECK_PORT", "8001")
        .does("`/healthz` and `/readyz` on every address; 0: off"),
    Flag::number("pprof-port", "ARGOCD_AGENT_PPROF_PORT", "0").nothing(NO_PPROF),
    Flag::list("log-level", "ARGOCD_AGENT_LOG_LEVEL", "info")
        .does("a level, and `subsystem=level` for resource-proxy, redis-proxy, grpc-event, \
               informer-event-buffer; only grpc-event is here"),
    Flag::text("log-format", "ARGOCD_AGENT_LOG_FORMAT", "text").does("text or json, to stderr"),
    Flag::list("full-detail", "ARGOCD_AGENT_FULL_DETAIL", "").nothing(OWN_DETAIL),
    Flag::on_off("destination-based-mapping", "ARGOCD_AGENT_DESTINATION_BASED_MAPPING", "false")
        .does("Applications keep the namespaces that they have at the principal; managed agents only"),
    Flag::on_off("create-namespace", "ARGOCD_AGENT_CREATE_NAMESPACE", "false")
        .does("makes the namespace of an Application where it is missing"),
    Flag::text("source-uid-mismatch-policy", "ARGOCD_AGENT_SOURCE_UID_MISMATCH_POLICY", "recreate")
        .does("recreate or upsert"),
    Flag::text("adoption-policy", "ARGOCD_AGENT_ADOPTION_POLICY", "always").does("always or never"),
    Flag::text("label-selector", "ARGOCD_AGENT_LABEL_SELECTOR", "")
        .does("only objects with these labels are the agent's business"),
    Flag::on_off("ignore-unmanaged-apps", "ARGOCD_AGENT_IGNORE_UNMANAGED_APPS", "false")
        .nothing("an Application without a source is never part of a resync, and no error"),
    Flag::text("on-application-recreate", "ARGOCD_AGENT_ON_APPLICATION_RECREATE", "ignore")
        .does("ignore, clear-status or resync"),
    Flag::text("kubeconfig", "", "").does("the agent's cluster; empty: that of the pod"),
    Flag::text("kubecontext", "", "").does("the context in the kubeconfig"),
    Flag::on_off("enable-resource-proxy", "ARGOCD_AGENT_ENABLE_RESOURCE_PROXY", "true")
        .missing_unless("false", NO_PROXY),
    Flag::duration("cache-refresh-interval", "ARGOCD_AGENT_CACHE_REFRESH_INTERVAL", "10s")
        .nothing("the counts of the cluster cache come from Redis, which is not read"),
    Flag::duration("informer-sync-timeout", "ARGOCD_AGENT_INFORMER_SYNC_TIMEOUT", "10s")
        .nothing("the agent starts at once and is ready when everything is listed"),
    Flag::duration(
        "buffer-informer-event-interval",
        "ARGOCD_AGENT_BUFFER_INFORMER_EVENT_INTERVAL",
        "0s",
    )
    .nothing("of each object the newest state is sent; there is nothing to hold back"),
    Flag::number("grpc-max-message-size", "ARGOCD_AGENT_GRPC_MAX_MESSAGE_SIZE", "209715200")
        .nothing("messages hold one object; Kubernetes takes none above 1.5 MB"),
    Flag::text("redis-addr", "REDIS_ADDR", "argocd-redis:6379").nothing(NO_REDIS),
    Flag::text("redis-username", "REDIS_USERNAME", "").nothing(NO_REDIS),
    Flag::text("redis-password", "REDIS_PASSWORD", "").nothing(NO_REDIS),
    Flag::text("redis-creds-dir-path", "REDIS_CREDS_DIR_PATH", "").nothing(NO_REDIS),
    Flag::on_off("redis-tls-enabled", "ARGOCD_AGENT_REDIS_TLS_ENABLED", "false").nothing(NO_REDIS),
    Flag::text("redis-tls-ca-path", "ARGOCD_AGENT_REDIS_TLS_CA_PATH", "").nothing(NO_REDIS),
    Flag::text(
        "redis-tls-ca-secret-name",
        "ARGOCD_AGENT_REDIS_TLS_CA_SECRET_NAME",
        "argocd-redis-tls",
    )
    .nothing(NO_REDIS),
    Flag::on_off("redis-tls-insecure", "ARGOCD_AGENT_REDIS_TLS_INSECURE", "false")
        .nothing(NO_REDIS),
    Flag::text("otlp-address", "ARGOCD_AGENT_OTLP_ADDRESS", "").nothing(OWN_TRACES),
    Flag::on_off("otlp-insecure", "ARGOCD_AGENT_OTLP_INSECURE", "false").nothing(OWN_TRACES),
    Flag::number("", "ARGOCD_AGENT_KUBE_QPS", "100").nothing(OWN_PACE),
    Flag::number("", "ARGOCD_AGENT_KUBE_BURST", "300").nothing(OWN_PACE),
    Flag::number("", "ARGOCD_AGENT_RECV_QUEUE_SIZE", "1000").nothing(NO_QUEUE),
    Flag::number("", "ARGOCD_AGENT_SEND_QUEUE_SIZE", "1000").nothing(NO_QUEUE),
];
