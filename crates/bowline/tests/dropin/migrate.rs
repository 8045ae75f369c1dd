//! `bowline migrate` on an installation as Go's tools make it.

use std::process::Command;

use serde_json::{Value, json};

use crate::cluster::app;
use crate::lab::{Lab, Make};

fn deployment(namespace: &str, role: &str, args: &[&str], env: &Value) -> Value {
    let name = format!("argocd-agent-{role}");
    let labels = json!({"app.kubernetes.io/name": name});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{
                "name": name, "image": "example.com/argocd-agent/argocd-agent:v0.9.0", "args": args, "env": env,
            }]}},
        },
    })
}

/// Both sides, with the principal's variables in the ConfigMap that upstream's manifests use.
fn installation() -> Lab {
    let lab = Lab::new("migrate");
    lab.install();
    lab.plane.create(&json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "argocd-agent-params", "namespace": lab.argocd},
        "data": {"principal.auth": "mtls:CN=([^,]+)", "principal.allowed-namespaces": "other-*"},
    }));
    let key = |name: &str, key: &str| {
        let reference = json!({"name": "argocd-agent-params", "key": key, "optional": true});
        json!({"name": name, "valueFrom": {"configMapKeyRef": reference}})
    };
    let env = json!([
        key("ARGOCD_PRINCIPAL_AUTH", "principal.auth"),
        key("ARGOCD_PRINCIPAL_ALLOWED_NAMESPACES", "principal.allowed-namespaces"),
        key("ARGOCD_PRINCIPAL_PPROF_PORT", "principal.pprof.port"),
        {"name": "ARGOCD_PRINCIPAL_EVENT_PROCESSORS", "value": "30"},
    ]);
    lab.plane.create(&deployment(&lab.argocd, "principal", &["principal"], &env));
    let args = ["agent", "--agent-mode", "managed", "--creds", "mtls:any"];
    lab.site.create(&deployment(&lab.home, "agent", &args, &json!([])));
    lab.plane.create(&app(&lab.name, "web", &json!({})));
    lab
}

fn migrate(lab: &Lab, more: &[&str]) -> String {
    let both = [&lab.plane.kubeconfig, &lab.site.kubeconfig];
    let out = Command::new(env!("CARGO_BIN_EXE_bowline"))
        .args(["migrate", "--principal-context", "c1", "--principal-namespace", &lab.argocd])
        .args(["--agent-context", "c2", "--agent-namespace", &lab.home])
        .args(more)
        .env("KUBECONFIG", std::env::join_paths(both).unwrap())
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn an_installation_is_found_and_its_replacement_planned() {
    let lab = installation();
    let plan: Value = serde_json::from_str(&migrate(&lab, &["-o", "json"])).unwrap();
    let found = &plan["found"];
    let principal = &found["principal"]["workload"];
    assert_eq!(
        (&principal["kind"], &principal["version"]),
        (&json!("deployment"), &json!("v0.9.0"))
    );
    assert_eq!(principal["env"]["ARGOCD_PRINCIPAL_AUTH"], "mtls:CN=([^,]+)");
    let names = |side: &str| {
        let list = found[side]["objects"].as_array().unwrap();
        list.iter().map(|o| o["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let needed = ["argocd-agent-ca", "argocd-agent-principal-tls", "argocd-agent-jwt"];
    assert!(needed.iter().all(|name| names("principal").contains(&(*name).to_owned())));
    assert_eq!(names("agent"), ["argocd-agent-ca", "argocd-agent-client-tls"]);
    let agents = json!([
        {"name": lab.name, "namespace": true, "applications": 1, "mode": "managed"},
    ]);
    assert_eq!(found["agents"], agents);
    let text =
        |list: &Value| list.as_array().unwrap().iter().map(Value::to_string).collect::<String>();
    let warned = text(&plan["warnings"]);
    assert!(warned.contains(&format!("leaves the agent {} out", lab.name)), "{warned}");
    assert!(text(&plan["lacks"]).contains("principal --event-processors"));
    assert_eq!(plan["steps"].as_array().unwrap().len(), 3);
    dry_run(&lab, &plan);
    let told = migrate(&lab, &[]);
    for heading in
        ["FOUND\n", "BEFORE YOU BEGIN\n", "STEP 1: ", "  back:\n", "WHAT WILL BE DIFFERENT\n"]
    {
        assert!(told.contains(heading), "{heading} in {told}");
    }
}

/// The patches of the plan are ones that the API server takes.
fn dry_run(lab: &Lab, plan: &Value) {
    for (step, cluster, role) in [(0, &lab.plane, "principal"), (1, &lab.site, "agent")] {
        let command = plan["steps"][step]["commands"][2].as_str().unwrap();
        let patch = command.split_once('\'').unwrap().1.trim_end_matches('\'');
        let namespace = if step == 0 { &lab.argocd } else { &lab.home };
        let name = format!("argocd-agent-{role}");
        let at = ["patch", "deployment", &name, "-n", namespace, "--patch", patch];
        let patched = cluster.ok(&[&at[..], &["--dry-run=server", "-o", "json"]].concat());
        let patched: Value = serde_json::from_str(&patched).unwrap();
        let pod = &patched["spec"]["template"]["spec"];
        assert_eq!(pod["securityContext"]["fsGroup"], 65532, "its volume can be written to");
        let container = &pod["containers"][0];
        assert_eq!(container["command"], json!(["argocd-agent"]));
        assert_eq!(container["args"][0], role, "its command line stays");
    }
}

/// The commands for a bare Pod work as they are printed: there is no Deployment to patch.
#[test]
fn a_bare_pod_is_deleted_and_created_with_another_program() {
    let lab = Lab::new("pod");
    lab.install();
    let mut pod = deployment(&lab.argocd, "principal", &[], &json!([]))["spec"]["template"].clone();
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    pod["metadata"]["name"] = json!("principal");
    pod["metadata"]["namespace"] = json!(lab.argocd);
    let container = &mut pod["spec"]["containers"][0];
    container["command"] = json!(["/usr/local/bin/argocd-agent", "principal"]);
    container["args"] = json!(["--auth=mtls:CN=([^,]+)"]);
    pod["spec"]["automountServiceAccountToken"] = json!(false);
    lab.plane.create(&pod);
    let plan: Value = serde_json::from_str(&migrate(&lab, &["-o", "json"])).unwrap();
    let place = format!("pod/{}/principal", lab.argocd);
    let before = lab.plane.get(&place).unwrap();
    let step = &plan["steps"][0];
    // All but the last: nothing makes it ready here.
    let commands = step["commands"].as_array().unwrap();
    shell(&lab, &commands[..commands.len() - 1]);
    let after = lab.plane.get(&place).unwrap();
    assert_ne!(after["metadata"]["uid"], before["metadata"]["uid"]);
    let container = &after["spec"]["containers"][0];
    assert_eq!(container["image"], "IMAGE");
    assert_eq!(container["command"], json!(["argocd-agent", "principal"]));
    assert_eq!(container["args"], json!(["--auth=mtls:CN=([^,]+)"]));
    assert_eq!(after["spec"]["securityContext"]["fsGroup"], 65532);
    shell(&lab, step["back"].as_array().unwrap());
    let back = lab.plane.get(&place).unwrap();
    assert_eq!(back["spec"]["containers"], before["spec"]["containers"]);
}

/// Runs commands as a person would.
fn shell(lab: &Lab, commands: &[Value]) {
    let path = std::env::var_os("PATH").unwrap();
    let kubectl = std::iter::once(bowline_testbed::provide("kubectl"));
    let path = std::env::join_paths(kubectl.chain(std::env::split_paths(&path))).unwrap();
    for command in commands.iter().map(|c| c.as_str().unwrap()) {
        let out = Command::new("bash")
            .args(["-c", command])
            .current_dir(lab.dir.path())
            .env("KUBECONFIG", &lab.plane.kubeconfig)
            .env("PATH", &path)
            .output()
            .unwrap();
        assert!(out.status.success(), "{command}: {}", String::from_utf8_lossy(&out.stderr));
    }
}

/// A principal as upstream's chart makes it: the ConfigMap has a name of the release's.
#[test]
fn what_a_helm_release_sets_is_found_under_whatever_name_it_has() {
    let lab = Lab::new("helm");
    lab.install();
    let release = "cp-argocd-agent-principal";
    let params = format!("{release}-params");
    lab.plane.create(&json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": params, "namespace": lab.argocd},
        "data": {
            "principal.auth": "mtls:CN=([^,]+)", "principal.allowed-namespaces": "*",
            "principal.destination-based-mapping": "true", "principal.pprof-port": "6060",
        },
    }));
    lab.plane.create(&json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "argocd-redis", "namespace": lab.argocd},
        "stringData": {"auth": "the-word-itself"},
    }));
    let key = |name: &str, key: &str| {
        let reference = json!({"name": params, "key": key, "optional": true});
        json!({"name": name, "valueFrom": {"configMapKeyRef": reference}})
    };
    let password = json!({"secretKeyRef": {"name": "argocd-redis", "key": "auth"}});
    let env = json!([
        key("ARGOCD_PRINCIPAL_AUTH", "principal.auth"),
        key("ARGOCD_PRINCIPAL_ALLOWED_NAMESPACES", "principal.allowed-namespaces"),
        key("ARGOCD_PRINCIPAL_DESTINATION_BASED_MAPPING", "principal.destination-based-mapping"),
        key("ARGOCD_PRINCIPAL_PPROF_PORT", "principal.pprof-port"),
        {"name": "REDIS_PASSWORD", "valueFrom": password},
    ]);
    lab.plane.create(&deployment(&lab.argocd, "principal", &["principal"], &env));
    let printed = migrate(&lab, &["-o", "json"]) + &migrate(&lab, &[]);
    assert!(!printed.contains("the-word-itself"), "{printed}");
    let plan: Value = serde_json::from_str(&migrate(&lab, &["-o", "json"])).unwrap();
    let found = &plan["found"];
    assert_eq!(found["mapping"], "destination");
    let workload = &found["principal"]["workload"];
    assert_eq!(workload["secretEnv"], json!({"REDIS_PASSWORD": "argocd-redis/auth"}));
    let objects = found["principal"]["objects"].as_array().unwrap();
    let holds = |name: &str| {
        let object = objects.iter().find(|o| o["name"] == name);
        object.map(|o| o["holds"].as_str().unwrap().to_owned())
    };
    assert_eq!(holds(&params).as_deref(), Some("variables: 4"));
    assert_eq!(holds("argocd-redis").as_deref(), Some("auth"));
    let told = |list: &str, word: &str| plan[list].to_string().contains(word);
    assert!(!told("warnings", "--allowed-namespaces"), "{}", plan["warnings"]);
    for flag in ["principal --pprof-port", "principal --redis-password"] {
        assert!(told("lacks", flag), "{flag}: {}", plan["lacks"]);
    }
}

#[test]
fn where_nothing_is_installed_that_is_said() {
    let lab = Lab::new("empty");
    lab.ctl_ok(Make::Ours, &["pki", "init"]);
    let told = migrate(&lab, &[]);
    assert!(told.contains("runs argocd-agent's principal"), "{told}");
    assert!(told.contains("argocd-agent-jwt is not there"), "{told}");
}
