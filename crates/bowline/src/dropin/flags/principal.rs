//! `argocd-agent principal`.

use super::{
    Flag, NO_PPROF, NO_PROXY, NO_QUEUE, NO_REDIS, OWN_CIPHERS, OWN_DETAIL, OWN_PACE, OWN_TRACES,
    TLS13,
};

const NO_HA: &str = "replication between two principals is not built; a Bowline hub that is back \
                     goes on where it was, from its own store";

/// Its flags, in the order in which they are explained.
pub(in super::super) const PRINCIPAL: &[Flag] = &[
    Flag::text("listen-host", "ARGOCD_PRINCIPAL_LISTEN_HOST", "")
        .does("the address of the agents' port; empty: all"),
    Flag::number("listen-port", "ARGOCD_PRINCIPAL_LISTEN_PORT", "8443").does("the agents' port"),
    Flag::number("metrics-port", "ARGOCD_PRINCIPAL_METRICS_PORT", "8000")
        .does("`/metrics` on every address; 0: off"),
    Flag::number("healthz-port", "ARGOCD_PRINCIPAL_HEALTH_CHECK_PORT", "8003")
        .does("`/healthz` and `/readyz` on every address; 0: off"),
    Flag::number("pprof-port", "ARGOCD_PRINCIPAL_PPROF_PORT", "0").nothing(NO_PPROF),
    Flag::list("log-level", "ARGOCD_PRINCIPAL_LOG_LEVEL", "info").does(
        "a level, and `subsystem=level` for resource-proxy, redis-proxy, grpc-event, \
               informer-event-buffer; only grpc-event is here",
    ),
    Flag::text("log-format", "ARGOCD_PRINCIPAL_LOG_FORMAT", "text").does("text or json, to stderr"),
    Flag::list("full-detail", "ARGOCD_PRINCIPAL_FULL_DETAIL", "").nothing(OWN_DETAIL),
    Flag::text("namespace", "ARGOCD_PRINCIPAL_NAMESPACE", "")
        .short('n')
        .does("the namespace of Argo CD and of the Secrets; empty: that of the pod, else argocd"),
    Flag::list("allowed-namespaces", "ARGOCD_PRINCIPAL_ALLOWED_NAMESPACES", "")
        .does("patterns of agents whose Applications may travel; none given: none may"),
    Flag::on_off("namespace-create-enable", "ARGOCD_PRINCIPAL_NAMESPACE_CREATE_ENABLE", "false")
        .does("makes the namespace of an autonomous agent where it is missing"),
    Flag::text("namespace-create-pattern", "ARGOCD_PRINCIPAL_NAMESPACE_CREATE_PATTERN", "")
        .does("only namespaces of this pattern are made"),
    Flag::list("namespace-create-labels", "ARGOCD_PRINCIPAL_NAMESPACE_CREATE_LABELS", "")
        .does("labels of those, `key=value`"),
    Flag::text("auth", "ARGOCD_PRINCIPAL_AUTH", "").does(
        "how agents say who they are: `mtls:[subject:|uri:]REGEX`, `userpass:FILE`, \
         `header:NAME:REGEX`; needed",
    ),
    Flag::text("tls-secret-name", "ARGOCD_PRINCIPAL_TLS_SECRET_NAME", "argocd-agent-principal-tls")
        .does("the Secret with the certificate that agents see; read again when it changes"),
    Flag::text("tls-cert", "ARGOCD_PRINCIPAL_TLS_SERVER_CERT_PATH", "")
        .does("that certificate from a file; read again when it changes"),
    Flag::text("tls-key", "ARGOCD_PRINCIPAL_TLS_SERVER_KEY_PATH", "").does("its key from a file"),
    Flag::on_off("insecure-tls-generate", "ARGOCD_PRINCIPAL_TLS_SERVER_ALLOW_GENERATE", "false")
        .does("shows the hub's own certificate, which is kept, not made anew at each start"),
    Flag::on_off("insecure-plaintext", "ARGOCD_PRINCIPAL_INSECURE_PLAINTEXT", "false")
        .does("no TLS on the agents' port; Bowline's own agents cannot come in then"),
    Flag::text(
        "tls-ca-secret-name",
        "ARGOCD_PRINCIPAL_TLS_SERVER_ROOT_CA_SECRET_NAME",
        "argocd-agent-ca",
    )
    .does("the Secret (`tls.crt`, `ca.crt`) with the CAs of agents' certificates; read again"),
    Flag::text("root-ca-path", "ARGOCD_PRINCIPAL_TLS_SERVER_ROOT_CA_PATH", "")
        .does("those CAs from a file; read again when it changes"),
    Flag::on_off("require-client-certs", "ARGOCD_PRINCIPAL_TLS_CLIENT_CERT_REQUIRE", "false")
        .does("agents must show a certificate with userpass too; with mtls they always must"),
    Flag::on_off(
        "client-cert-subject-match",
        "ARGOCD_PRINCIPAL_TLS_CLIENT_CERT_MATCH_SUBJECT",
        "false",
    )
    .does("its common name must be the agent's name; needs --require-client-certs"),
    Flag::text("tls-min-version", "ARGOCD_PRINCIPAL_TLS_MIN_VERSION", "tls1.3").nothing(TLS13),
    Flag::text("tls-max-version", "ARGOCD_PRINCIPAL_TLS_MAX_VERSION", "").nothing(TLS13),
    Flag::list("tls-ciphersuites", "ARGOCD_PRINCIPAL_TLS_CIPHERSUITES", "").nothing(OWN_CIPHERS),
    Flag::text("jwt-secret-name", "ARGOCD_PRINCIPAL_JWT_SECRET_NAME", "argocd-agent-jwt")
        .does("the Secret (`jwt.key`) with the key that signs agents' tokens"),
    Flag::text("jwt-key", "ARGOCD_PRINCIPAL_JWT_KEY_PATH", "").does("that key from a file"),
    Flag::on_off("insecure-jwt-generate", "ARGOCD_PRINCIPAL_JWT_ALLOW_GENERATE", "false")
        .does("a key that is made once and kept in the data folder"),
    Flag::on_off("enable-websocket", "ARGOCD_PRINCIPAL_ENABLE_WEBSOCKET", "false")
        .nothing("WebSocket is always served beside HTTP/2"),
    Flag::duration("keepalive-min-interval", "ARGOCD_PRINCIPAL_KEEP_ALIVE_MIN_INTERVAL", "0s")
        .nothing("pings are answered however often they come, within the limits of the port"),
    Flag::number("grpc-max-message-size", "ARGOCD_PRINCIPAL_GRPC_MAX_MESSAGE_SIZE", "209715200")
        .nothing("messages hold one object; Kubernetes takes none above 1.5 MB, the hub 1 MiB"),
    Flag::number("event-processors", "ARGOCD_PRINCIPAL_EVENT_PROCESSORS", "10")
        .nothing("every agent has a session of its own, and none waits for another"),
    Flag::on_off(
        "destination-based-mapping",
        "ARGOCD_PRINCIPAL_DESTINATION_BASED_MAPPING",
        "false",
    )
    .does("an Application goes to the agent that its destination names"),
    Flag::text("label-selector", "ARGOCD_PRINCIPAL_LABEL_SELECTOR", "")
        .does("only objects with these labels travel"),
    Flag::text("kubeconfig", "", "").does("the control-plane cluster; empty: that of the pod"),
    Flag::text("kubecontext", "", "").does("the context in the kubeconfig"),
    Flag::on_off(
        "enable-self-cluster-registration",
        "ARGOCD_PRINCIPAL_ENABLE_SELF_CLUSTER_REGISTRATION",
        "false",
    )
    .does("makes the Secret `cluster-NAME` when an agent comes for the first time"),
    Flag::text(
        "self-registration-client-cert-secret",
        "ARGOCD_PRINCIPAL_SELF_REGISTRATION_CLIENT_CERT_SECRET",
        "",
    )
    .does("the Secret (`tls.crt`, `tls.key`, `ca.crt`) whose contents such a Secret gets"),
    Flag::on_off("enable-resource-proxy", "ARGOCD_PRINCIPAL_ENABLE_RESOURCE_PROXY", "true")
        .missing_unless("false", NO_PROXY),
    Flag::text(
        "resource-proxy-address",
        "ARGOCD_PRINCIPAL_RESOURCE_PROXY_ADDRESS",
        "argocd-agent-resource-proxy:9090",
    )
    .does("the address in the Secrets `cluster-NAME` that are made"),
    Flag::text(
        "resource-proxy-secret-name",
        "ARGOCD_PRINCIPAL_RESOURCE_PROXY_SECRET_NAME",
        "argocd-agent-resource-proxy-tls",
    )
    .nothing(NO_PROXY),
    Flag::text("resource-proxy-cert-path", "ARGOCD_PRINCIPAL_RESOURCE_PROXY_TLS_CERT_PATH", "")
        .nothing(NO_PROXY),
    Flag::text("resource-proxy-key-path", "ARGOCD_PRINCIPAL_RESOURCE_PROXY_TLS_KEY_PATH", "")
        .nothing(NO_PROXY),
    Flag::text(
        "resource-proxy-ca-secret-name",
        "ARGOCD_PRINCIPAL_RESOURCE_PROXY_CA_SECRET_NAME",
        "argocd-agent-ca",
    )
    .nothing(NO_PROXY),
    Flag::text("resource-proxy-ca-path", "ARGOCD_PRINCIPAL_RESOURCE_PROXY_TLS_CA_PATH", "")
        .nothing(NO_PROXY),
    Flag::on_off("disable-redis-proxy", "ARGOCD_PRINCIPAL_DISABLE_REDIS_PROXY", "false")
        .missing_unless("true", NO_REDIS),
    Flag::text(
        "redis-server-address",
        "ARGOCD_PRINCIPAL_REDIS_SERVER_ADDRESS",
        "argocd-redis:6379",
    )
    .nothing(NO_REDIS),
    Flag::text("redis-password", "REDIS_PASSWORD", "").nothing(NO_REDIS),
    Flag::text("redis-creds-dir-path", "REDIS_CREDS_DIR_PATH", "").nothing(NO_REDIS),
    Flag::text("redis-compression-type", "ARGOCD_PRINCIPAL_REDIS_COMPRESSION_TYPE", "gzip")
        .nothing(NO_REDIS),
    Flag::on_off("redis-tls-enabled", "ARGOCD_PRINCIPAL_REDIS_TLS_ENABLED", "false")
        .nothing(NO_REDIS),
    Flag::text(
        "redis-proxy-server-tls-cert",
        "ARGOCD_PRINCIPAL_REDIS_PROXY_SERVER_TLS_CERT_PATH",
        "",
    )
    .nothing(NO_REDIS),
    Flag::text(
        "redis-proxy-server-tls-key",
        "ARGOCD_PRINCIPAL_REDIS_PROXY_SERVER_TLS_KEY_PATH",
        "",
    )
    .nothing(NO_REDIS),
    Flag::text(
        "redis-proxy-server-tls-secret-name",
        "ARGOCD_PRINCIPAL_REDIS_PROXY_SERVER_TLS_SECRET_NAME",
        "argocd-redis-proxy-tls",
    )
    .nothing(NO_REDIS),
    Flag::text("redis-ca-path", "ARGOCD_PRINCIPAL_REDIS_CA_PATH", "").nothing(NO_REDIS),
    Flag::text("redis-ca-secret-name", "ARGOCD_PRINCIPAL_REDIS_CA_SECRET_NAME", "argocd-redis-tls")
        .nothing(NO_REDIS),
    Flag::on_off("redis-tls-insecure", "ARGOCD_PRINCIPAL_REDIS_TLS_INSECURE", "false")
        .nothing(NO_REDIS),
    Flag::text("otlp-address", "ARGOCD_PRINCIPAL_OTLP_ADDRESS", "").nothing(OWN_TRACES),
    Flag::on_off("otlp-insecure", "ARGOCD_PRINCIPAL_OTLP_INSECURE", "false").nothing(OWN_TRACES),
    Flag::on_off("ha-enabled", "ARGOCD_PRINCIPAL_HA_ENABLED", "false")
        .missing_unless("false", NO_HA),
    Flag::text("ha-preferred-role", "ARGOCD_PRINCIPAL_HA_PREFERRED_ROLE", "primary").nothing(NO_HA),
    Flag::text("ha-peer-address", "ARGOCD_PRINCIPAL_HA_PEER_ADDRESS", "").nothing(NO_HA),
    Flag::duration("ha-failover-timeout", "ARGOCD_PRINCIPAL_HA_FAILOVER_TIMEOUT", "30s")
        .nothing(NO_HA),
    Flag::number("ha-admin-port", "ARGOCD_PRINCIPAL_HA_ADMIN_PORT", "0").nothing(NO_HA),
    Flag::list(
        "ha-allowed-replication-clients",
        "ARGOCD_PRINCIPAL_HA_ALLOWED_REPLICATION_CLIENTS",
        "",
    )
    .nothing(NO_HA),
    Flag::duration(
        "ha-replication-initial-ack-timeout",
        "ARGOCD_PRINCIPAL_HA_REPLICATION_INITIAL_ACK_TIMEOUT",
        "0s",
    )
    .nothing(NO_HA),
    Flag::number("", "ARGOCD_AGENT_KUBE_QPS", "100").nothing(OWN_PACE),
    Flag::number("", "ARGOCD_AGENT_KUBE_BURST", "300").nothing(OWN_PACE),
    Flag::number("", "ARGOCD_AGENT_RECV_QUEUE_SIZE", "1000").nothing(NO_QUEUE),
    Flag::number("", "ARGOCD_AGENT_SEND_QUEUE_SIZE", "1000").nothing(NO_QUEUE),
];
