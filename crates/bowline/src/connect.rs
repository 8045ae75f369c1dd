//! From flags, environment and context to a client.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bowline_client::{Client, Config};
use clap::Args;

use crate::context::{self, Context, File};
use crate::failure::{Failure, Outcome};
use crate::print;
use crate::quantity::Span;

/// Where an agent's own API is, if nobody says.
pub const AGENT_API: &str = "http://127.0.0.1:8502";

/// Which server to talk to.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Connection")]
pub struct Connection {
    /// The folder of a hub, an agent or `bowline dev`; its config.yaml is the context file
    #[arg(long, global = true, value_name = "DIR", env = "BOWLINE_DATA")]
    pub data: Option<PathBuf>,
    /// The context to use, instead of the current one
    #[arg(long, global = true, value_name = "NAME", env = "BOWLINE_CONTEXT")]
    pub context: Option<String>,
    /// The hub's API, instead of the context's
    #[arg(long, global = true, value_name = "URL", env = "BOWLINE_SERVER")]
    pub server: Option<String>,
    /// A file with the CA to trust, instead of the context's
    #[arg(long, global = true, value_name = "FILE", env = "BOWLINE_CA")]
    pub ca: Option<PathBuf>,
    /// The token to show, instead of the context's
    #[arg(
        long,
        global = true,
        value_name = "TOKEN",
        env = "BOWLINE_TOKEN",
        hide_env_values = true
    )]
    pub token: Option<String>,
    /// Talk to an agent's own API on this machine: by name, by address, or the usual port
    #[arg(
        long,
        global = true,
        value_name = "AGENT|ADDR",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
    )]
    pub at_agent: Option<String>,
    /// Allow plain http to another machine, where anyone on the way can read the token
    #[arg(long, global = true)]
    pub insecure: bool,
    /// How long an answer may take
    #[arg(long, global = true, value_name = "DURATION", default_value = "30s")]
    pub timeout: Span,
}

impl Connection {
    /// Whether an agent's own API is meant.
    pub fn is_at_agent(&self) -> bool {
        self.at_agent.is_some()
    }

    /// A client of the server that is meant.
    pub fn client(&self) -> Outcome<Client> {
        let path = self.context_path();
        let file = File::read(&path)?;
        let context = file.pick(self.context.as_deref());
        if let (Some(name), None) = (&self.context, context) {
            return Err(unknown_context(name, &path, &file));
        }
        let missing = || self.missing(&path, context);
        let given = self.authorities()?;
        let config = self.config(context, given).map_err(|f| missing().unwrap_or(f))?;
        // What a folder happens to hold must not pass for what the user meant.
        let own = context::own(|name| std::env::var(name).ok());
        let dev = Path::new(context::DEV).join("config.yaml");
        if path == dev && self.server.is_none() && own.is_file() {
            print::note(&format!("note: {} is used, not {}\n", path.display(), own.display()));
        }
        Ok(Client::new(config)?)
    }

    /// What is missing where no server is known: the file that was named, or a hub in it.
    fn missing(&self, path: &Path, context: Option<&Context>) -> Option<Failure> {
        if self.at_agent.is_some() {
            return None;
        }
        if context.is_some_and(|c| !c.agents.is_empty()) {
            let message = format!("{} is of an agent, not of a hub", path.display());
            return Some(Failure::usage(message).hint("talk to the agent with --at-agent"));
        }
        context::named(self.data.as_deref(), |name| std::env::var(name).ok())?;
        if path.is_file() {
            return None;
        }
        let message = format!("there is no context file {}", path.display());
        let hint = "a hub, an agent and `bowline dev` write it into their folder when they start";
        Some(Failure::not_found(message).hint(hint))
    }

    /// Trusts these authorities, as PEM, from now on: the context's server has just named them, and
    /// may show a certificate of a new one the next time.
    pub fn trust(&self, bundle: &str) -> Outcome {
        if self.ca.is_some() || self.server.is_some() || self.at_agent.is_some() {
            return Ok(());
        }
        let path = self.context_path();
        let mut file = File::read(&path)?;
        let Some(mut context) = file.pick(self.context.as_deref()).cloned() else { return Ok(()) };
        if context
            .authorities()?
            .is_some_and(|known| known.trim_ascii() == bundle.trim().as_bytes())
        {
            return Ok(());
        }
        (context.ca, context.ca_file) = (Some(bundle.to_owned()), None);
        let current = file.current.clone();
        file.set(context);
        file.current = current;
        file.write(&path).map_err(|e| Failure::new(format!("writing {}: {e}", path.display())))
    }

    /// Where the context file is.
    pub fn context_path(&self) -> PathBuf {
        context::path(self.data.as_deref(), |name| std::env::var(name).ok())
    }

    /// The CA that was named.
    fn authorities(&self) -> Outcome<Option<Vec<u8>>> {
        let Some(path) = &self.ca else { return Ok(None) };
        let read = std::fs::read(path).map(Some);
        read.map_err(|e| {
            let message = format!("reading the CA (--ca, BOWLINE_CA) {}: {e}", path.display());
            let hint = "`bowline pki show --bundle` prints it, where the hub can be asked already";
            Failure::usage(message).hint(hint)
        })
    }

    fn config(&self, context: Option<&Context>, given: Option<Vec<u8>>) -> Outcome<Config> {
        let server = match &self.at_agent {
            Some(at) => agent_address(at, context)?,
            None => {
                let known = || context.map(|c| c.server.clone()).filter(|s| !s.is_empty());
                let hint =
                    "give --data DIR of a hub or `bowline dev`, or --server, --ca and --token";
                let none = || Failure::usage("no hub to talk to").hint(hint);
                self.server.clone().or_else(known).ok_or_else(none)?
            }
        };
        let ca = match given {
            Some(ca) => Some(ca),
            None => context.map(Context::authorities).transpose()?.flatten(),
        };
        // A hub's token is none of an agent's business, nor another server's.
        let same = self.at_agent.is_none() && self.server.is_none();
        let from_context = context.filter(|_| same).and_then(|c| c.token.clone());
        let token = self.token.clone().or(from_context);
        let timeout = Duration::max(self.timeout.0, Duration::from_millis(1));
        Ok(Config { server, ca, token, insecure: self.insecure, timeout })
    }
}

fn unknown_context(name: &str, path: &Path, file: &File) -> Failure {
    let message = format!("there is no context {name:?} in {}", path.display());
    let names: Vec<_> = file.contexts.iter().map(|c| c.name.as_str()).collect();
    let hint = match (path.is_file(), &names[..]) {
        (false, _) => "there is no such file".to_owned(),
        (true, []) => "there are none".to_owned(),
        (true, names) => format!("there are: {}", names.join(", ")),
    };
    Failure::not_found(message).hint(hint)
}

/// An agent's address by its name in the context, as it is given, or the usual one.
fn agent_address(at: &str, context: Option<&Context>) -> Outcome<String> {
    if let Some(known) = context.and_then(|c| c.agents.get(at)) {
        return Ok(known.clone());
    }
    if at.contains("://") {
        return Ok(at.to_owned());
    }
    if at.contains(':') {
        return Ok(format!("http://{at}"));
    }
    let agents = context.map(|c| &c.agents).filter(|a| !a.is_empty());
    match (at, agents) {
        ("", None) => Ok(AGENT_API.to_owned()),
        ("", Some(agents)) if agents.len() == 1 => {
            Ok(agents.values().next().cloned().unwrap_or_default())
        }
        (_, agents) => {
            let names: Vec<_> = agents.into_iter().flat_map(|a| a.keys().cloned()).collect();
            let message = match at {
                "" => "there is more than one agent on this machine".to_owned(),
                name => format!("no agent {name:?} is known on this machine"),
            };
            let hint = match names.is_empty() {
                true => "give its address: --at-agent=127.0.0.1:8502".to_owned(),
                false => format!("name one: --at-agent={}", names.join("|")),
            };
            Err(Failure::usage(message).hint(hint))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(agents: &[(&str, &str)]) -> Context {
        let agents = agents.iter().map(|(n, a)| ((*n).to_owned(), (*a).to_owned())).collect();
        let (server, token) = ("https://hub:8080".into(), Some("secret".into()));
        Context { name: "c".into(), server, token, agents, ..Context::default() }
    }

    #[test]
    fn an_agent_is_found_by_name_address_or_the_usual_port() {
        let two = context(&[("alpha", "http://127.0.0.1:1"), ("beta", "http://127.0.0.1:2")]);
        let one = context(&[("alpha", "http://127.0.0.1:1")]);
        assert_eq!(agent_address("beta", Some(&two)).unwrap(), "http://127.0.0.1:2");
        assert_eq!(agent_address("127.0.0.1:9", None).unwrap(), "http://127.0.0.1:9");
        assert_eq!(agent_address("", None).unwrap(), AGENT_API);
        assert_eq!(agent_address("", Some(&one)).unwrap(), "http://127.0.0.1:1");
        let hint = agent_address("", Some(&two)).unwrap_err().hint.unwrap();
        assert_eq!(hint, "name one: --at-agent=alpha|beta");
        assert!(agent_address("gamma", None).is_err());
    }

    #[test]
    fn what_is_missing_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let at = |data: &str| Connection {
            data: Some(folder.path().join(data)),
            timeout: Span(Duration::from_secs(1)),
            ..Connection::default()
        };
        let told = at("none").client().unwrap_err();
        assert!(told.message.contains("none/config.yaml"), "{}", told.message);
        let ca = Connection { ca: Some("/no/ca.pem".into()), ..at("none") };
        for server in [None, Some("https://h:1".to_owned())] {
            let told = Connection { server, ..ca.clone() }.client().unwrap_err();
            assert!(told.message.contains("/no/ca.pem"), "{}", told.message);
        }
        let mut file = File::default();
        file.set(Context { server: "https://h:1".into(), ..context(&[]) });
        file.write(&folder.path().join("hub/config.yaml")).unwrap();
        let named = Connection { context: Some("nope".into()), ..at("hub") };
        assert_eq!(named.client().unwrap_err().hint.as_deref(), Some("there are: c"));
        let mut file = File::default();
        let server = String::new();
        file.set(Context { server, ..context(&[("a1", "http://127.0.0.1:7")]) });
        file.write(&folder.path().join("a1/config.yaml")).unwrap();
        let told = at("a1").client().unwrap_err();
        assert_eq!(told.hint.as_deref(), Some("talk to the agent with --at-agent"));
        let agent = Connection { at_agent: Some(String::new()), ..at("a1") };
        assert_eq!(agent.client().unwrap().server(), "http://127.0.0.1:7");
    }

    #[test]
    fn a_context_token_goes_only_to_the_context_server() {
        let context = context(&[]);
        let token =
            |connection: &Connection| connection.config(Some(&context), None).unwrap().token;
        let mut connection = Connection::default();
        assert_eq!(token(&connection).as_deref(), Some("secret"));
        connection.server = Some("https://other:1".into());
        assert_eq!(token(&connection), None);
        connection = Connection { at_agent: Some("127.0.0.1:9".into()), ..Connection::default() };
        assert_eq!(token(&connection), None);
        assert!(Connection::default().config(None, None).is_err());
    }
}
