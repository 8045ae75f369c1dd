//! Which source wins, what is refused, and what a dump says.

use serde_json::json;

use super::*;
use crate::quantity::Size;

fn layers(file: &str) -> Layers {
    Layers { file: Some(("hub.yaml".into(), file.into())), ..Layers::default() }
}

#[test]
fn a_flag_beats_the_environment_beats_the_file_beats_the_profile() {
    let mut all =
        layers("profile: cluster\nlimits:\n  message: 3MiB\napi: 127.0.0.1:1\nlisten: :2\n");
    all.env.insert("BOWLINE_API".into(), "127.0.0.1:3".into());
    all.env.insert("BOWLINE_SAN".into(), "a.example, b.example".into());
    all.env.insert("BOWLINE_LISTEN".into(), ":4".into());
    all.flags.push(("listen".into(), json!(":5")));
    let loaded: Loaded<Hub> = all.load().unwrap();
    let hub = &loaded.settings;
    assert_eq!(hub.listen.to_string(), "0.0.0.0:5");
    assert_eq!(hub.api.to_string(), "127.0.0.1:3");
    assert_eq!(hub.san, ["a.example", "b.example"]);
    assert_eq!((hub.limits.message, hub.limits.in_flight), (Size(3 << 20), Size(256 << 20)));
    assert_eq!(loaded.origin("listen"), Some(&Origin::Flag));
    assert_eq!(loaded.origin("api"), Some(&Origin::Env("BOWLINE_API".into())));
    assert_eq!(loaded.origin("limits.message"), Some(&Origin::File));
    assert_eq!(loaded.origin("limits.in-flight"), Some(&Origin::Profile));
    assert_eq!(loaded.origin("data"), Some(&Origin::Default));
}

#[test]
fn unknown_keys_are_errors_with_a_suggestion() {
    let error = layers("limits:\n  mesage: 1MiB\n").load::<Hub>().unwrap_err().to_string();
    assert_eq!(error, "there is no setting \"limits.mesage\"; did you mean \"message\"?");
    let error = layers("lissten: :1\n").load::<Hub>().unwrap_err().to_string();
    assert_eq!(error, "there is no setting \"lissten\"; did you mean \"listen\"?");
    let error = layers("xyzzyxyzzy: 1\n").load::<Hub>().unwrap_err().to_string();
    assert_eq!(error, "there is no setting \"xyzzyxyzzy\"");
}

#[test]
fn a_bad_value_names_its_setting_and_origin() {
    let error = layers("audit:\n  retention: long\n").load::<Hub>().unwrap_err().to_string();
    assert!(
        error.starts_with("audit.retention (from file): \"long\" is not a duration"),
        "{error}"
    );
    let mut env = Layers::default();
    env.env.insert("BOWLINE_HEALTH".into(), "here".into());
    let error = env.load::<Hub>().unwrap_err().to_string();
    assert!(
        error.starts_with("health (from BOWLINE_HEALTH): \"here\" is not an address"),
        "{error}"
    );
    assert!(layers("profile: huge\n").load::<Hub>().is_err());
    assert!(layers("a: [\n").load::<Hub>().is_err());
}

#[test]
fn a_keepalive_is_taken_and_one_that_floods_the_line_is_not() {
    let loaded = layers("keepalive: {every: 2m}\n").load::<Agent>().unwrap().settings;
    let taken = loaded.keepalive.options();
    assert_eq!(taken.every, std::time::Duration::from_secs(120));
    assert_eq!(taken.within, bowline_wire::Keepalive::AGENT.within, "the other stays");
    let error = layers("keepalive: {within: 0s}\n").load::<Hub>().unwrap_err().to_string();
    assert!(error.contains("keepalive.within") && error.contains("1s or more"), "{error}");
}

#[test]
fn tokens_are_not_shown() {
    let file = layers("join: blj_secret\nhub: hub.example:8443\n");
    let loaded: Loaded<Agent> = file.load().unwrap();
    assert_eq!(loaded.settings.join.as_deref(), Some("blj_secret"));
    let dump = loaded.dump();
    assert!(!dump.contains("blj_secret"), "{dump}");
    assert!(dump.contains("hub: hub.example:8443  # file\n"), "{dump}");
    assert!(dump.contains("transport: auto  # default\n"), "{dump}");
}

#[test]
fn mode_and_labels_are_no_settings_of_an_agent() {
    for (file, key) in [("mode: autonomous\n", "mode"), ("labels: {site: north}\n", "labels")] {
        let error = layers(file).load::<Agent>().unwrap_err().to_string();
        assert!(error.starts_with(&format!("{key} is no setting: it is in")), "{error}");
        assert!(error.contains("`bowline join-token`"), "{error}");
    }
}

#[test]
fn keys_of_a_mapping_can_be_the_users_own() {
    let with = |labels: &str| {
        format!("control-plane: {{reach: in-cluster, namespace-labels: {labels}}}\n")
    };
    let mut file = layers(&with("{site: north}"));
    let loaded: Loaded<Hub> = file.load().unwrap();
    assert_eq!(loaded.settings.control_plane.namespace_labels["site"], "north");
    let dump = loaded.dump();
    assert!(dump.contains("namespace-labels: {\"site\":\"north\"}  # file\n"), "{dump}");
    file.env.insert("BOWLINE_CONTROL_PLANE_NAMESPACE_LABELS".into(), "a=b,c=d".into());
    assert_eq!(file.load::<Hub>().unwrap().settings.control_plane.namespace_labels.len(), 2);
}

#[test]
fn a_dump_reads_back_as_the_same_settings() {
    let loaded: Loaded<Hub> =
        layers("san: [a, b]\nlog: {level: 'info,bowline_wire=debug'}\n").load().unwrap();
    let again: Loaded<Hub> = layers(&loaded.dump()).load().unwrap();
    assert_eq!(again.settings, loaded.settings);
}

#[test]
fn nothing_given_means_the_defaults() {
    assert_eq!(Layers::default().load::<Hub>().unwrap().settings, Hub::default());
    assert_eq!(Layers::default().load::<Agent>().unwrap().settings, Agent::default());
}

#[test]
fn a_bare_off_of_yaml_is_the_word_off() {
    for spelled in ["off", "'off'", "false", "Off"] {
        let loaded: Loaded<Hub> =
            layers(&format!("metrics: {spelled}\nhealth: :1\n")).load().unwrap();
        assert_eq!(loaded.settings.metrics, Listen::Off, "{spelled}");
        assert!(loaded.dump().contains("metrics: \"off\"  # file\n"), "{}", loaded.dump());
    }
    assert!(layers("metrics: on\n").load::<Hub>().is_err());
}

#[test]
fn kinds_that_travel_anyway_are_not_asked_for() {
    let hub = |kind: &str| {
        let file = format!("control-plane: {{reach: in-cluster, kinds: [{kind}]}}\n");
        let loaded = layers(&file).load::<Hub>().map_err(|e| e.to_string());
        loaded.map(|l| l.settings.control_plane.options().unwrap())
    };
    assert_eq!(hub("apps/Deployment").unwrap().unwrap().kinds.len(), 1);
    for known in ["core/Secret", "core/ConfigMap", "argoproj.io/Application"] {
        assert!(hub(known).unwrap_err().contains("leave the kind out"), "{known}");
    }
}

#[test]
fn what_the_start_would_refuse_is_told_before() {
    let told = |file: &str| layers(file).load::<Agent>().unwrap_err().to_string();
    let open = told("api: 0.0.0.0:8502\n");
    assert!(open.starts_with("api (from file): 0.0.0.0:8502 is not a loopback address"), "{open}");
    assert!(!open.contains("insecure"), "there is no such setting: {open}");
    assert_eq!(told("api: off\n"), "api (from file): it cannot be off");
    assert!(layers("api: '[::1]:1'\n").load::<Agent>().is_ok());
    assert!(layers("listen: off\n").load::<Hub>().is_err());
    let level = "log: {level: 'info,bowline_wire=loud'}\n";
    assert!(told(level).starts_with("log.level (from file): "), "{}", told(level));
    assert!(layers(level).load::<Hub>().is_err());
    let cluster = "kubernetes: {reach: in-cluster, ";
    for (file, key) in [
        ("name: Not A Name\n".to_owned(), "name"),
        ("kv: {prefixes: [/a]}\n".to_owned(), "kv.prefixes"),
        ("join: /no/such/file\n".to_owned(), "join"),
        (format!("{cluster}selector: 'a in'}}\n"), "kubernetes.selector"),
        (format!("{cluster}kinds: [Deployment]}}\n"), "kubernetes.kinds"),
    ] {
        let error = told(&file);
        assert!(error.starts_with(&format!("{key} (from file): ")), "{file}: {error}");
    }
    let told = |file: &str| layers(file).load::<Hub>().unwrap_err().to_string();
    let keys = "go-agents: {auth: 'mtls:x', key: k, key-secret: s}\n";
    assert!(told(keys).starts_with("go-agents.key-secret (from file): "), "{}", told(keys));
    let kinds = "control-plane: {reach: in-cluster, kinds: [x]}\n";
    assert!(told(kinds).starts_with("control-plane.kinds (from file): "), "{}", told(kinds));
}

#[test]
fn an_agent_that_has_joined_starts_without_its_token() {
    let data = tempfile::tempdir().unwrap();
    let file = format!("data: {}\njoin: /no/such/file\n", data.path().display());
    assert!(layers(&file).load::<Agent>().is_err(), "it must join first");
    std::fs::create_dir(data.path().join("pki")).unwrap();
    std::fs::write(data.path().join("pki").join("node.pem"), "").unwrap();
    let agent = layers(&file).load::<Agent>().unwrap().settings;
    assert_eq!(agent.token().unwrap(), None);
    std::fs::write(data.path().join("token"), "t\n").unwrap();
    let file = format!("join: {}\n", data.path().join("token").display());
    let agent = layers(&file).load::<Agent>().unwrap().settings;
    assert_eq!(agent.token().unwrap().as_deref(), Some("t"));
}

#[test]
fn values_that_cannot_work_are_refused_with_what_to_write() {
    let folder = tempfile::tempdir().unwrap();
    let known = "go-agents: {auth: 'mtls:(x)', newcomers: known}\n";
    let secret = "go-agents: {auth: 'mtls:(x)', key-secret: s}\n";
    let folder =
        format!("control-plane: {{reach: kubeconfig, kubeconfig: {}}}\n", folder.path().display());
    let plane = "control-plane: {reach: in-cluster, namespace-pattern: '('}\n";
    for (file, key, word) in [
        ("go-agents: {auth: password}\n", "go-agents.auth", "write mtls:subject:REGEX"),
        ("go-agents: {auth: 'mtls:subject:('}\n", "go-agents.auth", "regular expression"),
        ("go-agents: {auth: 'header:x:(.+)'}\n", "go-agents.auth", "go-agents.plaintext"),
        ("go-agents: {auth: 'userpass:/no/file'}\n", "go-agents.auth", "/no/file"),
        ("go-agents: {auth: 'mtls:(x)', token-life: 0s}\n", "go-agents.token-life", "1s or more"),
        ("go-agents: {auth: 'mtls:(x)', key: /no/key}\n", "go-agents.key", "/no/key"),
        (known, "go-agents.newcomers", "control-plane.reach"),
        (secret, "go-agents.key-secret", "control-plane.reach"),
        ("san: [good.example, 'https://hub']\n", "san", "without a scheme"),
        ("san: ['hub:8443']\n", "san", "\"hub:8443\""),
        (
            "control-plane: {reach: kubeconfig, kubeconfig: /no/k}\n",
            "control-plane.kubeconfig",
            "/no/k",
        ),
        (&folder, "control-plane.kubeconfig", "folder"),
        (plane, "control-plane.namespace-pattern", "("),
        ("telemetry: {otlp: {endpoint: 'collector:4318'}}\n", "telemetry.otlp.endpoint", "http://"),
        ("telemetry: {otlp: {ca: /no/ca}}\n", "telemetry.otlp.ca", "/no/ca"),
        ("limits: {message: 0}\n", "limits.message", "use 2MiB or more"),
        ("limits: {message: 1}\n", "limits.message", "1 bytes are too few"),
        ("api-tls: {certificate: /no/crt}\n", "api-tls.certificate", "/no/crt"),
        ("api-tls: {key: /dev/null}\n", "api-tls.key", "api-tls.certificate too"),
        ("session-tokens: {key-age: 5m}\n", "session-tokens.key-age", "1h or more"),
        ("audit: {entries: 0}\n", "audit.entries", "0 are too few"),
        ("limits: {in-flight: 1KiB}\n", "limits.in-flight", "use 64KiB or more"),
        ("limits: {in-flight-per-link: 0}\n", "limits.in-flight-per-link", "use 64KiB or more"),
        ("limits: {in-flight-per-link: 1GiB}\n", "limits.in-flight-per-link", "use 32MiB or less"),
    ] {
        let error = layers(file).load::<Hub>().unwrap_err().to_string();
        assert!(error.starts_with(&format!("{key} (from file): ")), "{file}: {error}");
        assert!(error.contains(word), "{file}: {error}");
    }
    for (file, key, word) in [
        ("kubernetes: {reach: kubeconfig, kubeconfig: /no/k}\n", "kubernetes.kubeconfig", "/no/k"),
        ("telemetry: {otlp: {endpoint: 'ftp://x'}}\n", "telemetry.otlp.endpoint", "http://"),
        ("absence-share: 101\n", "absence-share", "0 to 100"),
        ("proxy: 'socks5://x'\n", "proxy", "http://HOST:PORT"),
    ] {
        let error = layers(file).load::<Agent>().unwrap_err().to_string();
        assert!(error.starts_with(&format!("{key} (from file): ")), "{file}: {error}");
        assert!(error.contains(word), "{file}: {error}");
    }
    let good =
        "san: ['*.example.com', '::1']\ngo-agents: {auth: 'header:x:(.+)', plaintext: ':1'}\n";
    assert!(layers(good).load::<Hub>().is_ok());
}
