//! What the clusters can do, as later suites need it: rights, tokens, server-side apply, watches,
//! and controllers that clean up.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

const APPLICATION: &str = "
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: hello}
spec:
  project: default
  source: {repoURL: 'https://example.invalid/hello.git', path: web, targetRevision: main}
  destination: {name: here, namespace: hello}
";

fn start(kubeconfig: &Path, args: &[&str]) -> Child {
    let mut command = Command::new(bowline_testbed::provide("kubectl").join("kubectl"));
    command.arg("--kubeconfig").arg(kubeconfig).arg("--request-timeout=120s").args(args);
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    piped.spawn().unwrap()
}

fn kubectl(kubeconfig: &Path, args: &[&str], input: &str) -> Output {
    let mut child = start(kubeconfig, args);
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// As the administrator of the first cluster; it succeeds.
fn admin(args: &[&str], input: &str) -> String {
    let output = kubectl(&bowline_testbed::clusters(1).kubeconfigs[0], args, input);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What the API server said to a call that it refused.
fn refusal(output: &Output) -> String {
    assert!(!output.status.success(), "it was not refused");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn fresh_namespace() -> String {
    let name = bowline_testbed::namespace("real");
    admin(&["create", "namespace", &name], "");
    name
}

#[test]
fn a_user_without_rights_is_forbidden() {
    let user = &bowline_testbed::clusters(1).without_rights[0];
    let said = refusal(&kubectl(user, &["get", "secrets", "--all-namespaces"], ""));
    assert!(said.contains("(Forbidden)") && said.contains("\"without-rights\""), "{said}");
}

#[test]
fn an_account_has_the_rights_of_its_role_and_no_others() {
    use bowline_testbed::{Account, Rights};
    let (scene, clusters) = (fresh_namespace(), bowline_testbed::clusters(1));
    let rights = Rights::of_agent(&serde_json::json!({"kubernetes": {"namespaces": ["*"]}}));
    let account = Account::new(&rights, &clusters.kubeconfigs[0], &scene, &scene);
    let may = |what: &str, namespace: &str| {
        let can = ["auth", "can-i", "list", what, "-n", namespace];
        kubectl(account.kubeconfig(), &can, "").status.success()
    };
    assert!(may("secrets", &scene) && may("applications.argoproj.io", &scene));
    assert!(may("applications.argoproj.io", "default") && !may("secrets", "default"));
    assert!(!may("pods", &scene));
    drop(account);
    let name = format!("bowline-agent-{scene}");
    for kind in ["role", "clusterrole", "clusterrolebinding"] {
        let by = &clusters.kubeconfigs[0];
        let said = refusal(&kubectl(by, &["get", kind, &name, "-n", &scene], ""));
        assert!(said.contains("NotFound"), "{said}");
    }
    admin(&["delete", "namespace", &scene, "--wait=false"], "");
}

#[test]
fn a_service_account_is_known_by_its_token() {
    let namespace = fresh_namespace();
    let within = ["-n", &namespace];
    admin(&[&within[..], &["create", "serviceaccount", "reader"]].concat(), "");
    let token = admin(&[&within[..], &["create", "token", "reader"]].concat(), "");
    // The token alone: in a kubeconfig that knows the server, and a user who may do nothing.
    let user = &bowline_testbed::clusters(1).without_rights[0];
    let token = format!("--token={}", token.trim());
    let whoami = [&token, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"];
    let output = kubectl(user, &whoami, "");
    let name = String::from_utf8_lossy(&output.stdout);
    assert_eq!(name, format!("system:serviceaccount:{namespace}:reader"));
}

#[test]
fn the_roles_that_people_are_given_hold_rules() {
    for role in ["view", "edit", "admin"] {
        let rules = admin(&["get", "clusterrole", role, "-o", "jsonpath={.rules}"], "");
        assert!(rules.contains("configmaps"), "{role}: {rules}");
    }
}

#[test]
fn an_application_is_applied_watched_and_defended_against_another_manager() {
    let namespace = fresh_namespace();
    let cluster = &bowline_testbed::clusters(1).kubeconfigs[0];
    let watch = ["-n", &namespace, "get", "applications", "--watch", "-o", "name"];
    let mut watch = start(cluster, &watch);
    let apply = ["-n", &namespace, "apply", "--server-side", "-f", "-", "--field-manager"];
    admin(&[&apply[..], &["one"]].concat(), APPLICATION);
    let mut seen = String::new();
    BufReader::new(watch.stdout.take().unwrap()).read_line(&mut seen).unwrap();
    assert_eq!(seen, "application.argoproj.io/hello\n");
    watch.kill().unwrap();
    watch.wait().unwrap();

    let other = APPLICATION.replace("path: web", "path: elsewhere");
    let said = refusal(&kubectl(cluster, &[&apply[..], &["two"]].concat(), &other));
    assert!(said.contains("conflict with \"one\": .spec.source.path"), "{said}");
}

#[test]
fn the_schema_of_an_application_is_enforced() {
    let namespace = fresh_namespace();
    let cluster = &bowline_testbed::clusters(1).kubeconfigs[0];
    let bad = APPLICATION.replace("project: default", "project: [default]");
    let apply = ["-n", &namespace, "apply", "--server-side", "-f", "-"];
    let said = refusal(&kubectl(cluster, &apply, &bad));
    assert!(said.contains("spec.project"), "{said}");
}

#[test]
fn a_deleted_namespace_goes_with_what_it_holds() {
    let namespace = fresh_namespace();
    admin(&["-n", &namespace, "apply", "--server-side", "-f", "-"], APPLICATION);
    admin(&["delete", "namespace", &namespace, "--timeout=120s"], "");
    assert_eq!(admin(&["get", "namespace", &namespace, "--ignore-not-found"], ""), "");
}
