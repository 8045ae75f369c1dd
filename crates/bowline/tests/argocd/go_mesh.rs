//! Go agents (v0.9.0) whose names a mesh says, by a header that it sets: they cannot say it themselves.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};

use serde_json::{Value, json};

use crate::cluster::app;
use crate::control::{self, Control};
use crate::go_agent::{Auth, HEADER, Setup};

/// What an HTTP/2 client says first, in bytes.
const PREFACE: usize = 24;
/// The head of a frame: its length in three bytes, type, flags, and the stream in four.
const HEAD: usize = 9;
const HEADERS: u8 = 1;
const END_HEADERS: u8 = 4;

/// What stands before the hub: to each call it adds who makes it.
pub(crate) struct Mesh {
    pub(crate) port: String,
}

impl Mesh {
    pub(crate) fn new(to: &str, says: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port().to_string();
        let to = format!("127.0.0.1:{to}");
        // A header that is in nobody's table and is put in none: so the tables of both ends stay alike.
        let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
        let line = [vec![0], text(HEADER), text(says)].concat();
        std::thread::spawn(move || {
            for from in listener.incoming().map_while(Result::ok) {
                let Ok(onward) = TcpStream::connect(&to) else { continue };
                let (back, line) =
                    ((onward.try_clone().unwrap(), from.try_clone().unwrap()), line.clone());
                std::thread::spawn(move || pass(back.0, back.1));
                std::thread::spawn(move || pass_calls(from, onward, &line));
            }
        });
        Self { port }
    }
}

/// Passes frames on, with one header more in each call.
fn pass_calls(mut from: TcpStream, mut to: TcpStream, line: &[u8]) {
    let mut next = |len: usize| {
        let mut bytes = vec![0; len];
        from.read_exact(&mut bytes).map(|()| bytes)
    };
    let mut passed = next(PREFACE).and_then(|preface| to.write_all(&preface));
    while passed.is_ok() {
        passed = next(HEAD).and_then(|mut head| {
            let len = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
            let mut body = next(len)?;
            if head[3] == HEADERS && head[4] & END_HEADERS != 0 {
                body.extend_from_slice(line);
                head[..3].copy_from_slice(&u32::try_from(body.len()).unwrap().to_be_bytes()[1..]);
            }
            to.write_all(&[head, body].concat())
        });
    }
    let _closed = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    let _ended = std::io::copy(&mut from, &mut to);
    let _closed = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

#[test]
fn a_go_agent_may_come_by_the_name_that_a_mesh_says() {
    let setup = Setup { auth: Auth::Header, plaintext: true, ..Setup::new("managed") };
    let mut on = setup.scene();
    // Past the mesh, and through one that says something else.
    let past = setup.agent(&on);
    on.scene.hub_says(&format!("no header {HEADER}"));
    drop(past);
    let hub = on.port.clone();
    let name = on.scene.name.clone();
    on.port = Mesh::new(&hub, &format!("user/{name}")).port;
    let other = setup.agent(&on);
    on.scene.hub_says("does not match");
    drop(other);
    on.port = Mesh::new(&hub, &format!("agent/{name}")).port;
    let _agent = setup.agent(&on);
    let scene = &on.scene;
    scene.plane.create(&app(&scene.name, "web", &json!({})));
    let (here, there) = (scene.here("web"), scene.there("web"));
    scene.site_shows(&here, "it is there", |o| !o.is_null());
    scene.site.patch(&here, &json!({"status": {"health": {"status": "Healthy"}}}));
    scene.plane_shows(&there, "healthy", |o| o["status"]["health"]["status"] == "Healthy");
    scene.plane.delete(&there);
    scene.site_shows(&here, "gone", Value::is_null);
}

#[test]
fn an_agent_may_come_to_a_go_principal_by_the_name_that_a_mesh_says() {
    let control = Control::new(control::Auth::Header, &["m"]);
    let agent = control.agent("m", "managed", &[]);
    control.plane.create(&app(&agent.name, "web", &json!({})));
    control.shows(&agent.site, &agent.here("web"), "it is there", |o| !o.is_null());
    agent.site.patch(&agent.here("web"), &json!({"status": {"health": {"status": "Healthy"}}}));
    let is = |o: &Value| o["status"]["health"]["status"] == "Healthy";
    control.shows(&control.plane, &agent.there("web"), "its health", is);
}
