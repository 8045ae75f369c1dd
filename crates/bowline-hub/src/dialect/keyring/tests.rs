//! Guesses in floods, and keys that could not be read.

use bowline_kube::{Cluster, Kind, Scope};

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn whoever_floods_the_port_with_guesses_keeps_nobody_else_waiting() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("pki")).unwrap();
    let users = dir.path().join("users");
    let hash = "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW";
    std::fs::write(&users, format!("a1:{hash}\n")).unwrap();
    let options = DialectOptions::new(format!("userpass:{}", users.display()));
    let method: Method = options.auth.parse().unwrap();
    let keys = Arc::new(Keyring::open(&options, &method, dir.path(), None).await.unwrap());
    // Nothing is checked for a while.
    let all = u32::try_from(keys.checks.available_permits()).unwrap();
    let busy = keys.checks.clone().acquire_many_owned(all).await.unwrap();
    let (flood, honest): (IpAddr, IpAddr) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let ask = |from: IpAddr, secret: &str| {
        let (keys, secret) = (keys.clone(), secret.to_owned());
        tokio::spawn(async move { keys.check(from, "a1".into(), secret).await })
    };
    let guesses: Vec<_> = (0..MOST_WAITING).map(|n| ask(flood, &n.to_string())).collect();
    while keys.waiting.lock().get(&flood) != Some(&MOST_WAITING) {
        tokio::task::yield_now().await;
    }
    let refused = ask(flood, "one more").await.unwrap().unwrap_err().to_string();
    assert!(refused.contains("too many logins from 10.0.0.1"), "{refused}");
    let agent = ask(honest, "U*U");
    // Who hangs up waits no more.
    guesses.iter().for_each(tokio::task::JoinHandle::abort);
    drop(busy);
    assert!(agent.await.unwrap().unwrap());
    while !keys.waiting.lock().is_empty() {
        tokio::task::yield_now().await;
    }
    assert!(!ask(flood, "wrong").await.unwrap().unwrap());
}

/// A watch that has nothing to tell: nobody is at the address, and nothing is asked of it.
async fn silent(folder: &Path) -> Watch {
    let path = folder.join("kubeconfig");
    let file = serde_json::json!({
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {}}],
    });
    std::fs::write(&path, file.to_string()).unwrap();
    let access = bowline_kube::Access::Kubeconfig { path: Some(path), context: None };
    let options = bowline_kube::Options { access, ..bowline_kube::Options::default() };
    let kind = Kind {
        group: String::new(),
        version: "v1".into(),
        kind: "Secret".into(),
        plural: "secrets".into(),
        namespaced: true,
        status: false,
    };
    Cluster::connect(options).await.unwrap().watch(&kind, Scope::Namespaces(vec![]), None)
}

#[tokio::test]
async fn a_key_that_could_not_be_read_is_looked_at_again_though_nobody_tells_of_it() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("pki")).unwrap();
    let options = DialectOptions::new("mtls:CN=([^,]+)");
    let method: Method = options.auth.parse().unwrap();
    let keys = Keyring::open(&options, &method, dir.path(), None).await.unwrap();
    let keys = Keyring { key: TokenKey::Secret("tokens".into()), ..keys };
    let mut watch = Some(silent(dir.path()).await);
    let worth = tokio::time::timeout(4 * LOOK, keys.until_worth(&mut watch, false)).await;
    assert!(worth.is_err(), "what was read is read again when it has changed");
    let worth = tokio::time::timeout(200 * LOOK, keys.until_worth(&mut watch, true)).await;
    assert!(worth.is_ok(), "what was not is tried again");
}
