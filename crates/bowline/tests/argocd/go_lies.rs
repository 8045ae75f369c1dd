//! Go agents that are not who they say they are, or no longer trusted.

use serde_json::json;

use crate::cluster::app;
use crate::go_agent::{Auth, Setup};

#[test]
fn a_go_agent_with_a_certificate_of_nobody_is_refused_and_the_others_go_on() {
    let setup = Setup::new("managed");
    let on = setup.scene();
    let _agent = setup.agent(&on);
    let scene = &on.scene;
    let mut liar = on.agent(&setup, "liar");
    liar.start();
    scene.hub_says("liar is not in the roster");
    scene.plane.create(&app(&scene.name, "web", &json!({})));
    scene.site_shows(&scene.here("web"), "it is there", |o| !o.is_null());
}

#[test]
fn a_go_agent_under_a_name_that_its_certificate_does_not_bear_is_refused() {
    let hub = json!({"go-agents": {"certificate": "named"}});
    let setup = Setup { auth: Auth::UserPass, hub, ..Setup::new("managed") };
    let on = setup.scene();
    let mut liar = on.agent(&setup, "somebody-else");
    liar.start();
    on.scene.hub_says("its certificate says \"somebody-else\"");
    let mut honest = on.agent(&setup, &on.scene.name);
    honest.start();
    on.scene.stage.connected(&on.scene.name, true);
}

#[test]
fn a_go_agent_of_another_mode_than_the_roster_says_is_refused() {
    let setup = Setup::new("managed");
    let on = setup.scene();
    let other = Setup { mode: "autonomous", ..Setup::new("managed") };
    let mut agent = on.agent(&other, &on.scene.name);
    agent.start();
    on.scene.hub_says("says that it is autonomous, the roster says managed");
}

#[test]
fn a_certificate_on_the_block_list_is_cut_off_and_kept_out() {
    let setup = Setup::new("managed");
    let on = setup.scene();
    let _agent = setup.agent(&on);
    let scene = &on.scene;
    scene.stage.connected(&scene.name, true);
    let fingerprint = on.fingerprint(&scene.name);
    scene.plane.create(&json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "argocd-agent-tls-blocklist", "namespace": scene.argocd},
        "data": {fingerprint: "lost laptop"},
    }));
    scene.hub_says("its certificate is on the block list");
    scene.hub_says("the certificate is on the block list: issue another");
    scene.stage.connected(&scene.name, false);
    scene.plane.delete(&format!("configmap/{}/argocd-agent-tls-blocklist", scene.argocd));
    scene.stage.connected(&scene.name, true);
}
