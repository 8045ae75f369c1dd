//! Credentials of each kind, as a server sees them.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use serde_json::{Value, json};

use super::*;
use crate::testing::{Asked, Fake, nowhere, quick};
use crate::{Cluster, Options};

fn options(access: Access) -> Options {
    Options { access, ..Options::default() }
}

async fn cluster(fake: &Fake, access: Access) -> Cluster {
    fake.cluster_with(options(access), quick()).await
}

fn asking(cluster: &Cluster) -> tokio::task::JoinHandle<Result<String, Error>> {
    let cluster = cluster.clone();
    tokio::spawn(async move { cluster.version().await })
}

async fn accept(asked: Asked) {
    asked.answer(200, &json!({"gitVersion": "v1.36.3"})).await;
}

#[tokio::test]
async fn a_token_and_our_name_are_shown() {
    let mut fake = Fake::start().await;
    let asking = asking(&cluster(&fake, fake.kubeconfig(&json!({"token": "secret"}))).await);
    let asked = fake.next().await;
    assert_eq!(asked.token(), "Bearer secret");
    assert!(asked.headers["user-agent"].starts_with("bowline/"));
    accept(asked).await;
    assert_eq!(asking.await.unwrap().unwrap(), "v1.36.3");
}

#[tokio::test]
async fn a_token_file_that_changes_is_read_again_when_the_old_token_is_refused() {
    for end in ["", "\n"] {
        change_token_file(end).await;
    }
}

async fn change_token_file(end: &str) {
    let mut fake = Fake::start().await;
    let file = fake.file("token", &format!("old{end}"));
    let cluster = cluster(&fake, fake.kubeconfig(&json!({"tokenFile": file}))).await;
    let first = asking(&cluster);
    let asked = fake.next().await;
    assert_eq!(asked.token(), "Bearer old");
    accept(asked).await;
    first.await.unwrap().unwrap();

    fake.file("token", &format!("new{end}"));
    let second = asking(&cluster);
    fake.next().await.answer(401, &json!({"message": "expired"})).await;
    let asked = fake.next().await;
    assert_eq!(asked.token(), "Bearer new");
    accept(asked).await;
    second.await.unwrap().unwrap();
}

#[tokio::test]
async fn credentials_that_stay_refused_are_told_after_one_reading() {
    let mut fake = Fake::start().await;
    let asking = asking(&cluster(&fake, fake.kubeconfig(&json!({"token": "t"}))).await);
    for _ in 0..2 {
        fake.next().await.answer(401, &json!({"message": "Unauthorized"})).await;
    }
    let error = asking.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Unauthorized { .. }) && !error.is_transient(), "{error}");
}

#[cfg(unix)]
fn plugin(fake: &Fake, script: &str) -> Value {
    use std::os::unix::fs::PermissionsExt as _;
    let path = fake.file("plugin", &format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let version = "client.authentication.k8s.io/v1";
    json!({"exec": {"apiVersion": version, "command": path, "interactiveMode": "Never"}})
}

#[cfg(unix)]
#[tokio::test]
async fn a_credential_plugin_is_run_and_run_again_when_its_token_is_refused() {
    let mut fake = Fake::start().await;
    let file = fake.file("plugin-token", "one");
    let script = format!(
        r#"echo "{{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{{\"token\":\"$(cat {})\"}}}}""#,
        file.display()
    );
    let user = plugin(&fake, &script);
    let cluster = cluster(&fake, fake.kubeconfig(&user)).await;
    let asking = asking(&cluster);
    fake.file("plugin-token", "two");
    let asked = fake.next().await;
    assert_eq!(asked.token(), "Bearer one");
    asked.answer(401, &json!({})).await;
    let asked = fake.next().await;
    assert_eq!(asked.token(), "Bearer two");
    accept(asked).await;
    asking.await.unwrap().unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn a_credential_plugin_that_fails_is_told_with_its_words() {
    let fake = Fake::start().await;
    let user = plugin(&fake, "echo no such account >&2; exit 3");
    let opened = Cluster::open(options(fake.kubeconfig(&user)), nowhere(), quick()).await;
    let error = opened.unwrap_err();
    assert!(matches!(error, Error::Credentials(_)), "{error}");
    assert!(error.to_string().contains("plugin"), "{error}");
}

/// An authority, and certificates by it as PEM.
struct Pki {
    authority: CertifiedIssuer<'static, KeyPair>,
}

impl Pki {
    fn new() -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self { authority: CertifiedIssuer::self_signed(params, key).unwrap() }
    }

    fn leaf(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.authority).unwrap(), key)
    }

    fn server(&self) -> rustls::ServerConfig {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.authority.der().clone()).unwrap();
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
                .allow_unauthenticated()
                .build()
                .unwrap();
        let (cert, key) = self.leaf("127.0.0.1");
        let chain = vec![CertificateDer::from(cert)];
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)
            .unwrap()
    }
}

#[tokio::test]
async fn a_client_certificate_is_shown() {
    let pki = Pki::new();
    let mut fake = Fake::start_tls(pki.server()).await;
    let (cert, key) = pki.leaf("agent");
    let authority = fake.file("ca.pem", &pki.authority.pem());
    let user = json!({
        "client-certificate": fake.file("cert.pem", &cert.pem()),
        "client-key": fake.file("key.pem", &key.serialize_pem()),
    });
    let server = format!("https://127.0.0.1:{}", fake.port);
    let to = json!({"server": server, "certificate-authority": authority});
    let asking = asking(&cluster(&fake, fake.kubeconfig_to(&to, &user)).await);
    let asked = fake.next().await;
    assert_eq!(asked.certificate.as_deref(), Some(cert.der().as_ref()));
    accept(asked).await;
    asking.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_server_of_another_authority_is_not_trusted() {
    let (pki, other) = (Pki::new(), Pki::new());
    let fake = Fake::start_tls(pki.server()).await;
    let authority = fake.file("ca.pem", &other.authority.pem());
    let server = format!("https://127.0.0.1:{}", fake.port);
    let to = json!({"server": server, "certificate-authority": authority});
    let cluster = cluster(&fake, fake.kubeconfig_to(&to, &json!({"token": "t"}))).await;
    let error = cluster.version().await.unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
}

/// A pod at this server, with a service account.
fn pod(fake: &Fake, pki: &Pki) -> Surroundings {
    fake.file("ca.crt", &pki.authority.pem());
    fake.file("token", "account");
    fake.file("namespace", "argocd");
    Surroundings {
        kubeconfig: false,
        service: Some(("127.0.0.1".into(), fake.port.to_string())),
        mount: fake.folder.path().to_owned(),
        // A proxy for the rest of the world is none for one's own cluster.
        proxies: Proxies { https: "http://127.0.0.1:1".into(), none: String::new() },
    }
}

#[tokio::test]
async fn a_pod_uses_its_service_account_when_told_and_when_it_finds_nothing_else() {
    let pki = Pki::new();
    let mut fake = Fake::start_tls(pki.server()).await;
    for access in [Access::InCluster, Access::Infer] {
        let around = pod(&fake, &pki);
        let cluster = Cluster::open(options(access), around, quick()).await.unwrap();
        let asking = asking(&cluster);
        let asked = fake.next().await;
        assert_eq!(asked.token(), "Bearer account");
        accept(asked).await;
        asking.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn what_is_missing_is_named() {
    let error = |access, around| async move {
        let opened = Cluster::open(options(access), around, quick()).await;
        opened.unwrap_err().to_string()
    };
    let told = error(Access::Infer, nowhere()).await;
    assert!(told.contains("KUBECONFIG"), "{told}");
    let told = error(Access::InCluster, nowhere()).await;
    assert!(told.contains("KUBERNETES_SERVICE_HOST"), "{told}");
    let around = Surroundings { service: Some(("127.0.0.1".into(), "1".into())), ..nowhere() };
    let told = error(Access::InCluster, around).await;
    assert!(told.contains("/nowhere/ca.crt"), "{told}");
    let path = Some("/nowhere/kubeconfig".into());
    let told = error(Access::Kubeconfig { path, context: None }, nowhere()).await;
    assert!(told.contains("/nowhere/kubeconfig"), "{told}");
    let fake = Fake::start().await;
    let Access::Kubeconfig { path, .. } = fake.kubeconfig(&json!({})) else { panic!() };
    let context = Some("other".to_owned());
    let told = error(Access::Kubeconfig { path, context }, nowhere()).await;
    assert!(told.contains("other"), "{told}");
}
