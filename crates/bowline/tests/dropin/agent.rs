//! `argocd-agent agent`, which is Bowline's, at an unmodified Go principal.

use bowline_testbed::{Account, Rights};
use serde_json::{Value, json};

use crate::cluster::app;
use crate::lab::{Lab, Make, Process, free_port, http};

/// An agent's account and roles, as argocd-agent's own manifests have them.
const GO_AGENT: &str = include_str!("go-agent.yaml");

/// A Go principal, with everything from Secrets.
fn go_principal(lab: &Lab, port: &str, auth: &str, env: &[(&str, &str)]) -> Process {
    let (metrics, health) = (free_port(), free_port());
    let args = [
        "principal",
        "--kubeconfig",
        Lab::kubeconfig(&lab.plane),
        "-n",
        &lab.argocd,
        "--listen-host=127.0.0.1",
        "--listen-port",
        port,
        "--metrics-port",
        &metrics,
        "--healthz-port",
        &health,
        "--auth",
        auth,
        "--allowed-namespaces=*",
        "--enable-resource-proxy=false",
        "--disable-redis-proxy",
        "--redis-server-address=127.0.0.1:1",
    ];
    let log = lab.dir.path().join("go-principal.log");
    Process::start(&lab.program(Make::Go, "argocd-agent"), &args, env, &log)
}

/// An agent of ours, by the command line of a Go agent.
fn our_agent(
    lab: &Lab,
    account: &Account,
    port: &str,
    [metrics, health]: [&str; 2],
    more: &[(&str, &str)],
) -> Process {
    let args = [
        "agent",
        "--kubeconfig",
        account.flag(),
        "-n",
        &lab.home,
        "--agent-mode=managed",
        "--creds=mtls:any",
        "--server-address=127.0.0.1",
        "--server-port",
        port,
        "--metrics-port",
        metrics,
        "--healthz-port",
        health,
        "--redis-addr=127.0.0.1:1",
        "--enable-resource-proxy=false",
    ];
    let data = lab.dir.path().join("data");
    let mut env = vec![("BOWLINE_DATA", data.to_str().unwrap()), ("BOWLINE_API", "127.0.0.1:0")];
    env.extend(more);
    let log = lab.dir.path().join("agent.log");
    let mut agent = Process::start(&lab.program(Make::Ours, "argocd-agent"), &args, &env, &log);
    lab.until("the agent is ready", || {
        assert!(!agent.ended(), "{}", agent.said());
        agent.line("ready:").is_some()
    });
    agent
}

/// What a metric says, if it is there.
fn metric(port: &str, name: &str) -> Option<f64> {
    let told = http(port, "/metrics");
    let mut values = told.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    values.next().map(|value| value.parse().unwrap())
}

#[test]
fn it_takes_the_command_line_of_a_go_agent_and_does_its_work() {
    let lab = Lab::new("agent");
    lab.install();
    let (port, metrics, health) = (free_port(), free_port(), free_port());
    let principal = go_principal(&lab, &port, "mtls:CN=([^,]+)", &[]);
    let account = lab.agent_account();
    let agent = our_agent(&lab, &account, &port, [&metrics, &health], &[]);
    lab.plane.create(&app(&lab.name, "web", &json!({})));
    let there = format!("application/{}/web", lab.name);
    let here = format!("application/{}/web", lab.home);
    lab.until("the Application is there", || lab.site.get(&here).is_some());
    lab.site.patch(&here, &json!({"status": {"health": {"status": "Healthy"}}}));
    lab.until("its health is told", || {
        let shown = lab.plane.get(&there).unwrap_or(Value::Null);
        shown["status"]["health"]["status"] == "Healthy"
    });
    let is_alive = || http(&health, "/healthz").starts_with("HTTP/1.1 200");
    assert!(is_alive());
    let tells = |name: &str| metric(&metrics, name).unwrap_or_else(|| panic!("{name} is missing"));
    let since = "argocd_agent_connection_start_timestamp_seconds";
    assert!(tells("argocd_agent_connection_status") == 1.0 && tells(since) > 1.7e9);
    assert!(tells("argocd_agent_connections_total") == 1.0);
    assert!(tells("argocd_agent_auth_failures_total") == 0.0);
    // The Application and an ack came; an ack and its health went.
    assert!(tells("agent_events_received") >= 2.0 && tells("agent_events_sent") >= 2.0);
    drop(principal);
    lab.until("it is cut off", || tells("argocd_agent_connection_status") == 0.0);
    assert!(is_alive(), "an agent that is cut off is not one to restart");
    assert!(tells(since) == 0.0);
    let _stranger = go_principal(&lab, &port, "mtls:CN=somebody-else-([^,]+)", &[]);
    lab.until("it is refused", || tells("argocd_agent_auth_failures_total") >= 1.0);
    assert!(tells("argocd_agent_connections_total") == 1.0);
    assert!(agent.said().contains("--redis-addr has no effect here"), "{}", agent.said());
}

/// A Go principal whose queue is too short drops what happens at once, and never says it again.
#[test]
fn what_a_go_principal_drops_is_found_by_the_next_proof_on_the_same_line() {
    let lab = Lab::new("drops");
    lab.install();
    let (port, metrics, health) = (free_port(), free_port(), free_port());
    let short = [("ARGOCD_AGENT_SEND_QUEUE_SIZE", "8")];
    let principal = go_principal(&lab, &port, "mtls:CN=([^,]+)", &short);
    let proof = [("BOWLINE_GO_PRINCIPAL_PROOF", "2s")];
    let account = lab.agent_account();
    let agent = our_agent(&lab, &account, &port, [&metrics, &health], &proof);
    let status = "argocd_agent_connection_status";
    lab.until("it is connected", || metric(&metrics, status) == Some(1.0));
    let apps: Vec<_> = (0..30).map(|n| app(&lab.name, &format!("app-{n}"), &json!({}))).collect();
    principal.while_still(|| lab.plane.create_all(&apps));
    lab.until("all are there", || lab.site.list("applications", &lab.home).len() == apps.len());
    let ups = agent.said().matches("the line to the principal is up").count();
    assert_eq!(ups, 1, "{}", agent.said());
}

/// By destination, with the roles that argocd-agent's own manifests give an agent: Applications in the whole
/// cluster, and all else beside Argo CD alone.
#[test]
fn an_agent_by_destination_needs_no_more_rights_than_a_go_agent_has() {
    let mut lab = Lab::new("destination");
    lab.install();
    let (port, metrics, health) = (free_port(), free_port(), free_port());
    let team = lab.lend("team");
    let by_destination = [("ARGOCD_PRINCIPAL_DESTINATION_BASED_MAPPING", "true")];
    let _principal = go_principal(&lab, &port, "mtls:CN=([^,]+)", &by_destination);
    let account = lab.agent_account_of(&Rights::like("agent", GO_AGENT));
    // By a pattern, so that Applications of the whole cluster are followed.
    let pattern = format!("{}-*", lab.name);
    let more = [
        ("ARGOCD_AGENT_DESTINATION_BASED_MAPPING", "true"),
        ("ARGOCD_AGENT_ALLOWED_NAMESPACES", &pattern),
        ("ARGOCD_AGENT_CREATE_NAMESPACE", "true"),
    ];
    let agent = our_agent(&lab, &account, &port, [&metrics, &health], &more);
    lab.plane.create(&project(&lab, "shop"));
    lab.plane.create(&json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "repo", "namespace": lab.argocd,
            "labels": {"argocd.argoproj.io/secret-type": "repository"}},
        "stringData": {"url": "https://example.com/repo.git", "project": "shop"},
    }));
    let to_it = json!({"project": "shop", "destination": {"name": lab.name, "namespace": "web"}});
    lab.plane.create(&app(&team, "kept", &to_it));
    let there = ["application", "appproject", "secret"].into_iter().zip([
        format!("{team}/kept"),
        format!("{}/shop", lab.home),
        format!("{}/repo", lab.home),
    ]);
    for (kind, place) in there {
        let place = format!("{kind}/{place}");
        lab.until(&format!("{place} is there"), || lab.site.get(&place).is_some());
    }
    assert!(!agent.said().contains("RBAC does not allow"), "{}", agent.said());
}

/// A project that goes to the agent.
fn project(lab: &Lab, name: &str) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
        "metadata": {"name": name, "namespace": lab.argocd},
        "spec": {
            "sourceRepos": ["*"], "sourceNamespaces": ["*"],
            "destinations": [{"name": lab.name, "server": "*", "namespace": "*"}],
        },
    })
}
