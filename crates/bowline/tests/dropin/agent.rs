//! `argocd-agent agent`, which is Bowline's, at an unmodified Go principal.

use serde_json::{Value, json};

use crate::cluster::app;
use crate::lab::{Lab, Make, Process, free_port, http};

/// A Go principal, with everything from Secrets; where it listens.
fn go_principal(lab: &Lab) -> (Process, String) {
    let (port, metrics, health) = (free_port(), free_port(), free_port());
    let args = [
        "principal",
        "--kubeconfig",
        Lab::kubeconfig(&lab.plane),
        "-n",
        &lab.argocd,
        "--listen-host=127.0.0.1",
        "--listen-port",
        &port,
        "--metrics-port",
        &metrics,
        "--healthz-port",
        &health,
        "--auth=mtls:CN=([^,]+)",
        "--allowed-namespaces=*",
        "--enable-resource-proxy=false",
        "--disable-redis-proxy",
        "--redis-server-address=127.0.0.1:1",
    ];
    let log = lab.dir.path().join("go-principal.log");
    let process = Process::start(&lab.program(Make::Go, "argocd-agent"), &args, &[], &log);
    (process, port)
}

#[test]
fn it_takes_the_command_line_of_a_go_agent_and_does_its_work() {
    let lab = Lab::new("agent");
    lab.install();
    let (_principal, port) = go_principal(&lab);
    let (metrics, health) = (free_port(), free_port());
    let args = [
        "agent",
        "--kubeconfig",
        Lab::kubeconfig(&lab.site),
        "-n",
        &lab.home,
        "--agent-mode=managed",
        "--creds=mtls:any",
        "--server-address=127.0.0.1",
        "--server-port",
        &port,
        "--metrics-port",
        &metrics,
        "--healthz-port",
        &health,
        "--redis-addr=127.0.0.1:1",
        "--enable-resource-proxy=false",
    ];
    let data = lab.dir.path().join("data");
    let env = [("BOWLINE_DATA", data.to_str().unwrap()), ("BOWLINE_API", "127.0.0.1:0")];
    let log = lab.dir.path().join("agent.log");
    let mut agent = Process::start(&lab.program(Make::Ours, "argocd-agent"), &args, &env, &log);
    lab.until("the agent is ready", || {
        assert!(!agent.ended(), "{}", agent.said());
        agent.line("ready:").is_some()
    });
    lab.plane.create(&app(&lab.name, "web", &json!({})));
    let there = format!("application/{}/web", lab.name);
    let here = format!("application/{}/web", lab.home);
    lab.until("the Application is there", || lab.site.get(&here).is_some());
    lab.site.patch(&here, &json!({"status": {"health": {"status": "Healthy"}}}));
    lab.until("its health is told", || {
        let shown = lab.plane.get(&there).unwrap_or(Value::Null);
        shown["status"]["health"]["status"] == "Healthy"
    });
    assert!(http(&health, "/healthz").starts_with("HTTP/1.1 200"));
    assert!(http(&metrics, "/metrics").contains("\nargocd_agent_connection_status 1\n"));
    assert!(agent.said().contains("--redis-addr has no effect here"), "{}", agent.said());
}
