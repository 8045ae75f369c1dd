//! Plans for installations of several shapes.

use super::super::Item;
use super::*;

const NOW: Wall = Wall(1_794_787_200_000);

fn item(name: &str, until: Option<&str>) -> Item {
    let until = until.map(str::to_owned);
    Item { kind: "Secret".into(), name: name.into(), holds: "tls.crt".into(), until }
}

fn found(args: &[&str]) -> Found {
    let workload = Workload {
        kind: "deployment".into(),
        name: "argocd-agent-principal".into(),
        container: "principal".into(),
        version: "v0.9.0".into(),
        args: args.iter().map(|a| (*a).to_owned()).collect(),
        ..Workload::default()
    };
    let objects = vec![
        item(CA, Some("2036-01-01T00:00:00Z")),
        item(PRINCIPAL_TLS, Some("2026-12-01T00:00:00Z")),
        item(JWT, None),
    ];
    let side = Side {
        context: Some("control".into()),
        namespace: "argocd".into(),
        workload: Some(workload),
        objects,
    };
    let known =
        |name: &str, namespace, mode| Known { name: name.into(), namespace, applications: 2, mode };
    Found {
        principal: Some(side),
        agents: vec![known("a1", true, "managed"), known("b1", false, "autonomous")],
        mapping: "namespace".into(),
        ..Found::default()
    }
}

/// What stands between quotes.
fn patch_in(command: &str) -> Value {
    serde_json::from_str(command.split('\'').nth(1).unwrap()).unwrap()
}

/// The first step, with another workload.
fn first_step(change: impl FnOnce(&mut Workload)) -> Step {
    let mut found = found(&["--auth=mtls:x"]);
    change(found.principal.as_mut().unwrap().workload.as_mut().unwrap());
    plan(found, NOW).steps.swap_remove(0)
}

#[test]
fn a_volume_is_for_a_group_that_the_program_is_in() {
    let pod = |step: Step| patch_in(&step.commands[2])["spec"]["template"]["spec"].clone();
    assert_eq!(pod(first_step(|_| {}))["securityContext"], json!({"fsGroup": 65532}));
    let grouped = pod(first_step(|workload| workload.volumes = Volumes::Group));
    assert!(grouped.get("securityContext").is_none(), "it has one already: {grouped}");
}

#[test]
fn a_role_among_the_words_of_the_command_stays() {
    let words = ["/usr/local/bin/argocd-agent", "principal"];
    let step = first_step(|workload| workload.command = words.map(str::to_owned).to_vec());
    let container =
        patch_in(&step.commands[2])["spec"]["template"]["spec"]["containers"][0].clone();
    assert_eq!(container["command"], json!(["argocd-agent", "principal"]));
}

#[test]
fn a_pod_is_made_anew_since_it_cannot_be_changed() {
    let step = first_step(|workload| workload.kind = "pod".into());
    let patch = patch_in(&step.commands[2]);
    assert!(patch["spec"].get("template").is_none(), "{patch}");
    assert_eq!(patch["spec"]["containers"][0]["image"], IMAGE);
    assert_eq!(patch["spec"]["securityContext"]["fsGroup"], 65532);
    assert!(step.commands[3].ends_with("delete pod/argocd-agent-principal"), "{step:?}");
    assert!(step.commands[4].ends_with("create -f argocd-agent-principal-after.yaml"));
    assert!(!step.commands.iter().any(|c| c.contains("rollout")), "{step:?}");
    assert!(step.back[1].ends_with("create -f argocd-agent-principal-before.yaml"));
}

#[test]
fn each_step_says_what_to_run_what_stays_what_to_check_and_how_to_go_back() {
    let plan = plan(found(&["--auth=mtls:x", "--allowed-namespaces=*"]), NOW);
    assert_eq!(plan.steps.len(), 3, "the principal, and two agents");
    for step in &plan.steps {
        assert!(!step.commands.is_empty() && !step.stays.is_empty(), "{step:?}");
        assert!(!step.check.is_empty() && !step.back.is_empty(), "{step:?}");
    }
    let first = &plan.steps[0];
    assert!(first.title.contains("v0.9.0"));
    assert!(first.commands.iter().all(|c| c.starts_with("kubectl --context control -n argocd ")));
    let patch = patch_in(&first.commands[2]);
    let container = &patch["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["name"], "principal");
    assert!(plan.steps[2].commands[1].contains("join-token b1 --mode autonomous"));
}

#[test]
fn what_is_wrong_already_and_what_will_be_missing_is_said_before() {
    let told = plan(found(&["--auth=mtls:x", "--event-processors=40"]), NOW);
    let has = |list: &[String], words: &str| list.iter().any(|w| w.contains(words));
    assert!(has(&told.warnings, "argocd-agent-principal-tls ends at 2026-12-01"));
    assert!(!has(&told.warnings, "argocd-agent-ca ends"));
    assert!(has(&told.warnings, "leaves the agent a1 out"));
    assert!(has(&told.warnings, "b1 has no namespace"));
    assert!(has(&told.lacks, "principal --event-processors"));
    assert!(has(&told.lacks, "principal --enable-resource-proxy"));
    let odd = plan(found(&["--from-the-future"]), NOW);
    assert!(has(&odd.warnings, "would be refused"));
    let mapped = plan(found(&["--auth=mtls:x", "--destination-based-mapping"]), NOW);
    assert_eq!(mapped.found.mapping, "destination");
    assert!(!has(&mapped.warnings, "no namespace"));
}
