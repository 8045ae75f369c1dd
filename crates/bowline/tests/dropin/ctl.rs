//! `argocd-agentctl` of both makes on the same objects.

use serde_json::Value;

use crate::lab::{Lab, Make};

#[test]
fn what_ours_makes_gos_tool_reads() {
    let lab = Lab::new("ours");
    // The tool of v0.9.0 knows no other keys than RSA.
    let rsa = ["--key-algorithm", "rsa", "--key-size", "2048"];
    let with = |args: &[&'static str]| args.iter().chain(&rsa).copied().collect::<Vec<_>>();
    lab.ctl_ok(Make::Ours, &with(&["pki", "init"]));
    let again = lab.ctl(Make::Ours, &["pki", "init"]);
    assert_eq!(again.status.code(), Some(4), "a CA is not replaced unasked");
    lab.ctl_ok(Make::Ours, &with(&["pki", "issue", "principal", "--dns", "a.example,b.example"]));
    lab.ctl_ok(Make::Ours, &["jwt", "create-key"]);
    let mut create = with(&["agent", "create"]);
    create.push(&lab.name);
    lab.ctl_ok(Make::Ours, &create);
    let (ours, go) = inspect(&lab, &["pki", "inspect"]);
    assert_eq!((&ours["ca"], &ours["principal"]), (&go["ca"], &go["principal"]));
    assert_eq!(go["principal"]["dns"], serde_json::json!(["a.example", "b.example"]));
    let subject = go["ca"]["subject"].as_str().unwrap();
    assert_eq!(subject, "CN=argocd-agent-ca", "nothing about production");
    let (ours, go) = inspect(&lab, &["jwt", "inspect-key"]);
    assert_eq!(ours["sha256"], go["sha256"]);
    assert_eq!(lab.ctl_ok(Make::Go, &["agent", "list"]), format!("{}\n", lab.name));
    let (ours, go) = inspect(&lab, &["agent", "inspect", &lab.name]);
    assert_eq!((&ours["server"], &ours["name"]), (&go["server"], &go["name"]));
    assert_eq!(lab.ctl_ok(Make::Go, &["agent", "print-tls", &lab.name]), cert(&lab));
    // Go signs with our CA.
    lab.ctl_ok(Make::Go, &["pki", "issue", "resource-proxy", "--ip", "127.0.0.1"]);
    let (ours, go) = inspect(&lab, &["pki", "inspect"]);
    assert_eq!(ours["resourceProxy"], go["resourceProxy"]);
}

fn cert(lab: &Lab) -> String {
    lab.ctl_ok(Make::Ours, &["agent", "print-tls", &lab.name])
}

fn inspect(lab: &Lab, args: &[&str]) -> (Value, Value) {
    (lab.ctl_json(Make::Ours, args), lab.ctl_json(Make::Go, args))
}

#[test]
fn what_gos_tool_makes_ours_reads_and_changes() {
    let lab = Lab::new("theirs");
    // Go's keys have 4096 bits, and take their time: two at once.
    std::thread::scope(|scope| {
        scope.spawn(|| lab.ctl_ok(Make::Go, &["jwt", "create-key"]));
        lab.ctl_ok(Make::Go, &["pki", "init"]);
    });
    lab.ctl_ok(Make::Go, &["agent", "create", &lab.name]);
    let (ours, go) = inspect(&lab, &["pki", "inspect"]);
    assert_eq!(ours["ca"], go["ca"]);
    assert_eq!(lab.ctl_json(Make::Ours, &["jwt", "inspect-key"])["keyLength"], 4096);
    assert_eq!(lab.ctl_ok(Make::Ours, &["agents", "list"]), format!("{}\n", lab.name));
    // Ours signs with Go's CA, whatever the format of its key.
    let agent = ["--agent-namespace", &lab.home, "pki", "issue", "agent", &lab.name];
    lab.ctl_ok(Make::Ours, &agent);
    let place = format!("secret/{}/argocd-agent-ca", lab.home);
    let ca = lab.site.get(&place).unwrap();
    assert_eq!(ca["data"].as_object().unwrap().keys().collect::<Vec<_>>(), ["ca.crt"]);
    let change = ["agent", "reconfigure", &lab.name, "--resource-proxy-server", "proxy.example:9"];
    lab.ctl_ok(Make::Ours, &[&change[..], &["--reissue-client-cert"]].concat());
    let go = lab.ctl_json(Make::Go, &["agent", "inspect", &lab.name]);
    assert_eq!(go["server"], format!("https://proxy.example:9?agentName={}", lab.name));
    assert_eq!(lab.ctl_ok(Make::Go, &["agent", "print-tls", &lab.name]), cert(&lab));
    let dumped = lab.ctl_ok(Make::Ours, &["pki", "dump", "--all"]);
    assert!(dumped.contains("BEGIN CERTIFICATE") && dumped.contains("PRIVATE KEY"), "{dumped}");
    assert_eq!(lab.ctl_ok(Make::Go, &["pki", "dump", "--all"]), dumped);
}

#[test]
fn fingerprints_are_put_on_the_list_and_taken_off() {
    let lab = Lab::new("block");
    lab.ctl_ok(Make::Ours, &["pki", "init"]);
    lab.ctl_ok(Make::Ours, &["agent", "create", &lab.name]);
    let inspected = lab.ctl_json(Make::Ours, &["agent", "inspect", &lab.name]);
    let print = inspected["fingerprint"].as_str().unwrap();
    let list = |args: &[&str]| lab.ctl_ok(Make::Ours, &[&["blocklist", "tls"][..], args].concat());
    list(&["add", &print.to_lowercase()]);
    assert_eq!(list(&["list"]), format!("FINGERPRINT\n{print}\n"));
    let place = format!("configmap/{}/argocd-agent-tls-blocklist", lab.argocd);
    assert_eq!(lab.plane.get(&place).unwrap()["data"][print], "");
    list(&["remove", print]);
    assert_eq!(list(&["list"]), "the list is empty\n");
    assert!(!lab.ctl(Make::Ours, &["blocklist", "tls", "add", "zz"]).status.success());
}
