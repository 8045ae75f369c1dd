//! What the flags of a principal make of a hub.

use super::super::flags::PRINCIPAL;
use super::*;
use crate::config::{Hub, Layers};

fn read(args: &[&str]) -> Outcome<Principal> {
    let args: Vec<String> = args.iter().map(|a| (*a).to_owned()).collect();
    Principal::of(&Given::read(PRINCIPAL, &args, |_| None).unwrap(), None)
}

/// The settings as a hub takes them: each must be one that it has.
fn settings(args: &[&str]) -> Hub {
    let read = read(args).unwrap();
    Layers::read(None, read.settings).unwrap().load::<Hub>().unwrap().settings
}

#[test]
fn what_upstreams_manifests_set_means_the_same_for_a_hub() {
    let hub = settings(&["--auth", "mtls:CN=([^,]+)", "--allowed-namespaces", "a-*,b"]);
    assert_eq!(hub.listen.to_string(), "0.0.0.0:8443");
    assert_eq!(hub.metrics.to_string(), "0.0.0.0:8000");
    assert_eq!(hub.health.to_string(), "0.0.0.0:8003");
    assert_eq!(hub.go_agents.auth.as_deref(), Some("mtls:CN=([^,]+)"));
    assert_eq!(hub.go_agents.key_secret.as_deref(), Some("argocd-agent-jwt"));
    assert_eq!(hub.control_plane.namespaces, ["a-*", "b"]);
    assert!(!hub.control_plane.create_namespaces);
    assert_eq!(hub.control_plane.cluster_secrets.proxy, None);
    let none = settings(&["--auth=mtls:(x)"]);
    assert!(none.control_plane.namespaces.is_empty(), "none given: none allowed");
}

#[test]
fn every_other_flag_reaches_its_setting() {
    let hub = settings(&[
        "--auth=userpass:/dev/null",
        "--listen-host=::1",
        "--listen-port=1",
        "--metrics-port=0",
        "--namespace-create-enable",
        "--namespace-create-pattern=^a",
        "--namespace-create-labels=x=1,y=2",
        "--destination-based-mapping",
        "--label-selector=team=a",
        "--require-client-certs",
        "--client-cert-subject-match",
        "--jwt-key=/dev/null",
        "--enable-self-cluster-registration",
        "--self-registration-client-cert-secret=s",
        "--kubeconfig=/dev/null",
        "--kubecontext=ctx",
        "-n=ns",
    ]);
    assert_eq!(hub.listen.to_string(), "[::1]:1");
    assert_eq!(hub.metrics.to_string(), "off");
    let plane = hub.control_plane.options().unwrap().unwrap();
    let new = plane.new_namespaces.unwrap();
    assert_eq!((new.pattern.as_deref(), new.labels.len()), (Some("^a"), 2));
    assert_eq!(plane.namespace, "ns");
    let secrets = plane.cluster_secrets.unwrap();
    assert_eq!(secrets.proxy, "argocd-agent-resource-proxy:9090");
    assert_eq!(secrets.credentials.as_deref(), Some("s"));
    let agents = hub.go_agents.options("ns").unwrap().unwrap();
    assert_eq!(agents.certificate, bowline_hub::CertificateRule::Named);
    assert_eq!(agents.key, bowline_hub::TokenKey::File("/dev/null".into()));
    assert_eq!(agents.newcomers, bowline_hub::Newcomers::Enlisted);
}

#[test]
fn certificates_come_from_secrets_unless_files_are_named() {
    let faces = |args: &[&str]| {
        let mut all = vec!["--auth=mtls:(x)"];
        all.extend(args);
        read(&all).map(|p| p.faces)
    };
    let Faces::Given { certificate, roots, .. } = faces(&[]).unwrap() else { panic!("generated") };
    let name = "argocd-agent-principal-tls".to_owned();
    assert_eq!(certificate, Source::Secret { name, fields: &["tls.crt"] });
    assert!(matches!(roots, Source::Secret { name, .. } if name == "argocd-agent-ca"));
    let files = ["--tls-cert=/c", "--tls-key=/k", "--root-ca-path=/r"];
    assert_eq!(
        faces(&files).unwrap(),
        Faces::Given {
            certificate: Source::File("/c".into()),
            key: Source::File("/k".into()),
            roots: Source::File("/r".into()),
        }
    );
    assert!(faces(&["--tls-cert=/c"]).unwrap_err().message.contains("--tls-key"));
    let own = faces(&["--insecure-tls-generate"]).unwrap();
    assert!(matches!(own, Faces::Own { .. }));
    assert_eq!(faces(&["--insecure-plaintext"]).unwrap(), Faces::Plaintext);
}

#[test]
fn without_tls_the_port_is_agents_of_argocd_agent_only() {
    let hub = settings(&["--auth=userpass:/dev/null", "--insecure-plaintext"]);
    assert_eq!(hub.go_agents.plaintext.to_string(), "0.0.0.0:8443");
    assert_eq!(hub.listen.to_string(), "127.0.0.1:0");
}

#[test]
fn what_cannot_work_is_refused_with_what_to_do() {
    let told = |args: &[&str]| read(args).unwrap_err();
    assert!(told(&[]).hint.unwrap().contains("--auth 'mtls:"));
    assert!(told(&["--auth=x", "--listen-host=a.example"]).message.contains("listen-host"));
    assert!(told(&["--auth=x", "--client-cert-subject-match"]).message.contains("require-client"));
    assert!(told(&["--auth=x", "--log-level=loud"]).message.contains("loud"));
    assert!(told(&["--auth=x", "--metrics-port=70000"]).message.contains("a port"));
}
