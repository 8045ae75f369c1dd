//! Proxies on the way to a server.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::*;
use crate::access::Surroundings;
use crate::testing::{Fake, nowhere, quick};
use crate::{Cluster, Options};

/// A proxy for one connection, whatever it is asked for, to this port; gives the head of the request.
async fn proxy(to: u16) -> (u16, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let served = tokio::spawn(async move {
        let (mut near, _) = listener.accept().await.unwrap();
        let mut head = vec![];
        while !head.ends_with(b"\r\n\r\n") {
            head.push(near.read_u8().await.unwrap());
        }
        near.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        let mut far = TcpStream::connect(("127.0.0.1", to)).await.unwrap();
        tokio::spawn(async move { tokio::io::copy_bidirectional(&mut near, &mut far).await });
        String::from_utf8(head).unwrap()
    });
    (port, served)
}

/// What a cluster's version is asked for through.
async fn asked_through(fake: &mut Fake, cluster: &Value, around: Surroundings) {
    let access = fake.kubeconfig_to(cluster, &json!({"token": "t"}));
    let options = Options { access, ..Options::default() };
    let cluster = Cluster::open(options, around, quick()).await.unwrap();
    let asking = tokio::spawn(async move { cluster.version().await });
    fake.next().await.answer(200, &json!({"gitVersion": "v1.36.3"})).await;
    assert_eq!(asking.await.unwrap().unwrap(), "v1.36.3");
}

#[tokio::test]
async fn the_proxy_of_a_kubeconfig_is_gone_through_with_its_password() {
    let mut fake = Fake::start().await;
    let (port, head) = proxy(fake.port).await;
    let url = format!("http://me:p%40ss@127.0.0.1:{port}");
    let cluster = json!({"server": "http://api.nowhere:6443", "proxy-url": url});
    asked_through(&mut fake, &cluster, nowhere()).await;
    let head = head.await.unwrap();
    assert!(head.starts_with("CONNECT api.nowhere:6443 "), "{head}");
    // me:p@ss
    assert!(head.to_lowercase().contains("proxy-authorization: basic "), "{head}");
    assert!(head.contains("bWU6cEBzcw=="), "{head}");
}

#[test]
fn the_proxy_of_the_environment_is_for_servers_that_are_not_excepted() {
    let proxies = Proxies {
        https: "http://proxy:3128".into(),
        none: "10.0.0.0/8, .cluster.local,kubernetes.default.svc".into(),
    };
    let through = |server: &str| {
        let way = Way::Around(proxies.clone());
        way.proxy(&server.parse().unwrap()).unwrap().map(|(url, _)| url.to_string())
    };
    assert_eq!(through("https://api.example.com:6443"), Some("http://proxy:3128/".into()));
    for server in [
        "https://10.96.0.1:443",
        "https://api.cluster.local:443",
        "https://kubernetes.default.svc",
        "https://127.0.0.1:6443",
        "https://[::1]:6443",
        "https://localhost:6443",
        "http://api.example.com:8001",
    ] {
        assert_eq!(through(server), None, "{server}");
    }
    let none = Way::Around(Proxies::default());
    assert!(none.proxy(&"https://api.example.com".parse().unwrap()).unwrap().is_none());
    assert!(Way::Straight.proxy(&"https://api.example.com".parse().unwrap()).unwrap().is_none());
}

#[test]
fn a_proxy_that_is_not_spoken_to_is_refused_with_what_to_do() {
    for url in ["socks5://127.0.0.1:1080", "https://127.0.0.1:3129"] {
        let refused = Way::Named(url.into()).proxy(&"https://api.example.com".parse().unwrap());
        let told = refused.unwrap_err().to_string();
        assert!(told.contains("only http:// proxies") && told.contains("NO_PROXY"), "{told}");
    }
}
