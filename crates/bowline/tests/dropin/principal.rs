//! Unmodified Go agents at `argocd-agent principal`, which is a Bowline hub.

use bowline_testbed::{Account, Rights};
use serde_json::{Value, json};

use crate::cluster::app;
use crate::lab::{Lab, Make, Process, free_port, http};

/// The principal, as upstream's manifests start it, and where it listens.
struct Principal {
    process: Process,
    port: String,
    metrics: String,
    health: String,
    _account: Account,
}

/// The account and roles of argocd-agent's principal, and of its agent, as its own manifests have them.
const GO: [&str; 2] = [include_str!("go-principal.yaml"), include_str!("go-agent.yaml")];

/// With the rights of `deploy/rbac`.
fn principal(lab: &Lab, more: &[(&str, &str)]) -> Principal {
    principal_with(lab, &Rights::of_hub(&[], &Value::Null), more)
}

fn principal_with(lab: &Lab, rights: &Rights, more: &[(&str, &str)]) -> Principal {
    let account = lab.hub_account_of(rights);
    let (port, metrics, health) = (free_port(), free_port(), free_port());
    let args = [
        "principal",
        "--kubeconfig",
        account.flag(),
        "-n",
        &lab.argocd,
        "--listen-host=127.0.0.1",
        "--listen-port",
        &port,
        "--metrics-port",
        &metrics,
        "--event-processors=20",
        "--allowed-namespaces=*",
    ];
    let data = lab.dir.path().join("hub");
    let mut env = vec![
        ("ARGOCD_PRINCIPAL_AUTH", "mtls:CN=([^,]+)"),
        ("ARGOCD_PRINCIPAL_HEALTH_CHECK_PORT", &health),
        ("BOWLINE_DATA", data.to_str().unwrap()),
        ("BOWLINE_API", "127.0.0.1:0"),
    ];
    env.extend(more);
    let log = lab.dir.path().join("principal.log");
    let mut process = Process::start(&lab.program(Make::Ours, "argocd-agent"), &args, &env, &log);
    lab.until("the principal is ready", || {
        assert!(!process.ended(), "{}", process.said());
        process.line("ready:").is_some()
    });
    Principal { process, port, metrics, health, _account: account }
}

/// A Go agent, with everything from Secrets.
fn go_agent(lab: &Lab, port: &str) -> Process {
    agent(lab, Make::Go, Lab::kubeconfig(&lab.site), port, "managed", &[])
}

/// An agent of either make, with everything else from Secrets.
fn agent(
    lab: &Lab,
    make: Make,
    kubeconfig: &str,
    port: &str,
    mode: &str,
    more: &[(&str, &str)],
) -> Process {
    let (metrics, health) = (free_port(), free_port());
    let args = [
        "agent",
        "--kubeconfig",
        kubeconfig,
        "-n",
        &lab.home,
        "--agent-mode",
        mode,
        "--creds=mtls:any",
        "--server-address=127.0.0.1",
        "--server-port",
        port,
        "--metrics-port",
        &metrics,
        "--healthz-port",
        &health,
        "--redis-addr=127.0.0.1:1",
        "--enable-resource-proxy=false",
    ];
    let data = lab.dir.path().join("agent");
    let mut env = vec![("BOWLINE_DATA", data.to_str().unwrap()), ("BOWLINE_API", "127.0.0.1:0")];
    env.extend(more);
    let log = lab.dir.path().join("agent.log");
    Process::start(&lab.program(make, "argocd-agent"), &args, &env, &log)
}

/// Both have the accounts that Go's programs had.
#[test]
fn an_agent_of_ours_works_with_it_by_the_secrets_and_rights_of_a_go_agent() {
    let lab = Lab::new("both");
    lab.install();
    let principal = principal_with(&lab, &Rights::like("hub", GO[0]), &[]);
    let account = lab.agent_account_of(&Rights::like("agent", GO[1]));
    let _agent = agent(&lab, Make::Ours, account.flag(), &principal.port, "managed", &[]);
    let there = format!("application/{}/web", lab.name);
    let here = format!("application/{}/web", lab.home);
    lab.plane.create(&app(&lab.name, "web", &json!({})));
    shows(&lab, &here, "is there", |o| !o.is_null());
    lab.site.patch(&here, &json!({"status": {"health": {"status": "Healthy"}}}));
    lab.until("its health is told", || {
        lab.plane.get(&there).unwrap()["status"]["health"]["status"] == "Healthy"
    });
    lab.plane.delete(&there);
    shows(&lab, &here, "is gone", Value::is_null);
}

#[test]
fn a_go_agent_works_with_it_through_new_certificates_and_beside_a_native_agent() {
    let lab = Lab::new("principal");
    lab.install();
    let principal = principal(&lab, &[]);
    let said = principal.process.said();
    let told = |flag: &str| said.contains(&format!("note: {flag} has no effect here: "));
    assert!(told("--event-processors") && told("--enable-resource-proxy"), "{said}");
    assert!(!told("--allowed-namespaces"), "{said}");
    assert!(http(&principal.health, "/healthz").starts_with("HTTP/1.1 200"));
    let agent = go_agent(&lab, &principal.port);
    let there = format!("application/{}/web", lab.name);
    let here = format!("application/{}/web", lab.home);
    lab.plane.create(&app(&lab.name, "web", &json!({})));
    shows(&lab, &here, "is there", |o| !o.is_null());
    lab.site.patch(&here, &json!({"status": {"health": {"status": "Healthy"}}}));
    lab.until("its health is told", || {
        lab.plane.get(&there).unwrap()["status"]["health"]["status"] == "Healthy"
    });
    lab.until("the agent is counted", || {
        let metrics = http(&principal.metrics, "/metrics");
        let names = ["argocd_principal_connected_agents", "agent_connected_with_principal"];
        names.iter().all(|name| metrics.contains(&format!("\n{name} 1\n")))
    });
    lab.until("its time is told, in minutes", || {
        let metrics = http(&principal.metrics, "/metrics");
        let mut lines = metrics.lines();
        let minutes = lines.find_map(|l| l.strip_prefix("principal_agent_avg_connection_time "));
        let minutes: f64 = minutes.unwrap().parse().unwrap();
        assert!(minutes < 5.0, "{minutes}");
        minutes > 0.0
    });
    counted(&lab, &principal);
    drop(agent);
    lab.until("it is down, and not as one that never joined", || {
        bowline(&lab, &["agents", "list"]).lines().any(|line| {
            let is = |word: &str| line.split_whitespace().any(|w| w == word);
            is(&lab.name) && is("down") && is("0.9.0")
        })
    });
    // A new CA, and certificates of it: the agent, which reads its own at its start only, is let in
    // once the principal shows and trusts the new ones.
    lab.ctl_ok(Make::Ours, &["pki", "init", "--force"]);
    lab.issue(&["--upsert"]);
    let _agent = go_agent(&lab, &principal.port);
    lab.plane.patch(&there, &json!({"spec": {"source": {"path": "new"}}}));
    shows(&lab, &here, "has the new path", |o| o["spec"]["source"]["path"] == "new");
    native(&lab, &principal);
}

#[test]
fn where_newcomers_must_be_known_a_go_agent_is_told_which_command_makes_it_so() {
    let lab = Lab::new("known");
    lab.ctl_ok(Make::Ours, &["pki", "init"]);
    lab.ctl_ok(Make::Ours, &["jwt", "create-key"]);
    lab.issue(&[]);
    let principal = principal(&lab, &[("BOWLINE_GO_AGENTS_NEWCOMERS", "known")]);
    let agent = go_agent(&lab, &principal.port);
    let name = &lab.name;
    let told =
        format!("Argo CD has no cluster Secret for {name}: argocd-agentctl agent create {name}");
    lab.until("the agent is told", || agent.said().contains(&told));
    assert!(!bowline(&lab, &["agents", "list"]).contains(name.as_str()), "nobody was entered");
    lab.ctl_ok(Make::Ours, &["agent", "create", name]);
    lab.until("it is let in", || http(&principal.metrics, "/metrics").contains(ONE_CONNECTED));
    counted(&lab, &principal);
}

/// A Go agent whose queue is too short drops what happens at once, and never says it again.
#[test]
fn what_a_go_agent_drops_is_found_by_the_next_proof_on_the_same_line() {
    let lab = Lab::new("drops-up");
    lab.install();
    let principal = principal(&lab, &[("BOWLINE_GO_AGENTS_PROOF", "2s")]);
    let short = [("ARGOCD_AGENT_SEND_QUEUE_SIZE", "8")];
    let agent =
        agent(&lab, Make::Go, Lab::kubeconfig(&lab.site), &principal.port, "autonomous", &short);
    lab.until("it is let in", || http(&principal.metrics, "/metrics").contains(ONE_CONNECTED));
    let apps: Vec<_> = (0..30).map(|n| app(&lab.home, &format!("app-{n}"), &json!({}))).collect();
    agent.while_still(|| lab.site.create_all(&apps));
    lab.until("all are shown", || lab.plane.list("applications", &lab.name).len() == apps.len());
    let said = principal.process.said();
    assert_eq!(said.matches("an agent of argocd-agent is connected").count(), 1, "{said}");
}

/// What the hub's metrics say of one agent.
const ONE_CONNECTED: &str = "\nbowline_hub_agents_connected 1\n";

/// A Go agent that is connected counts as any other does.
fn counted(lab: &Lab, principal: &Principal) {
    assert!(http(&principal.metrics, "/metrics").contains(ONE_CONNECTED));
    let listed: Value =
        serde_json::from_str(&bowline(lab, &["agents", "list", "-o", "json"])).unwrap();
    let items = listed["items"].as_array().or(listed.as_array()).unwrap();
    let agent = items.iter().find(|agent| agent["name"] == lab.name.as_str()).unwrap();
    assert_eq!(agent["connected"], true, "{agent}");
    assert_eq!(agent["mode"], "managed", "{agent}");
    assert_eq!(agent["version"], "0.9.0", "{agent}");
    assert_eq!(agent["speaks"], "argocd-agent", "{agent}");
    assert!(agent["lastContact"].is_string(), "{agent}");
    let doctor = bowline(lab, &["doctor"]);
    assert!(doctor.contains("the one agent is connected"), "{doctor}");
}

/// Runs a command at the hub.
fn bowline(lab: &Lab, args: &[&str]) -> String {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_bowline"));
    let out = command.arg("--data").arg(lab.dir.path().join("hub")).args(args).output().unwrap();
    let said =
        format!("{}{}", String::from_utf8_lossy(&out.stderr), String::from_utf8_lossy(&out.stdout));
    assert!(out.status.success() || args == ["doctor"], "{args:?}: {said}");
    String::from_utf8(out.stdout).unwrap()
}

fn shows(lab: &Lab, place: &str, what: &str, is: impl Fn(&Value) -> bool) {
    lab.until(&format!("{place} {what}"), || is(&lab.site.get(place).unwrap_or(Value::Null)));
}

/// An agent of ours joins the same hub, on the same port.
fn native(lab: &Lab, principal: &Principal) {
    let token = bowline(lab, &["join-token", "native"]);
    let hub = format!("127.0.0.1:{}", principal.port);
    let own = lab.dir.path().join("native");
    let args = ["agent", "--data", own.to_str().unwrap(), "--hub", &hub, "--join", token.trim()];
    let ports = ["--api", "127.0.0.1:0", "--metrics", "off", "--health", "off"];
    let args: Vec<_> = args.into_iter().chain(ports).collect();
    let log = lab.dir.path().join("native.log");
    let _agent = Process::start(env!("CARGO_BIN_EXE_bowline").as_ref(), &args, &[], &log);
    lab.until("both agents are up", || {
        let listed: Value =
            serde_json::from_str(&bowline(lab, &["agents", "list", "-o", "json"])).unwrap();
        let items = listed["items"].as_array().or(listed.as_array()).unwrap();
        items.iter().filter(|agent| agent["connected"] == true).count() == 2
    });
}
