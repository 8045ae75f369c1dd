//! Principal and agent of argocd-agent (Go, v0.9.0), unmodified, as processes.

use std::fs::OpenOptions;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};

use anyhow::{Context as _, Result, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Which agent names itself so in its certificate.
pub(crate) const AUTH: &str = "mtls:CN=([^,]+)";

/// A process of theirs. Killed when dropped.
pub(crate) struct Peer {
    program: PathBuf,
    args: Vec<String>,
    env: Vec<(&'static str, String)>,
    log: PathBuf,
    /// Where its metrics are.
    metrics: u16,
    child: Option<Child>,
}

/// What a peer is told.
pub(crate) struct Told<'a> {
    /// How it reaches its cluster.
    pub(crate) kubeconfig: &'a Path,
    /// Its namespace there.
    pub(crate) namespace: &'a str,
    /// Where certificates are.
    pub(crate) certificates: &'a Path,
    /// Where its Redis is.
    pub(crate) redis: u16,
    /// Where it logs.
    pub(crate) log: PathBuf,
}

impl Peer {
    /// A principal on a port, whose queues hold so many events.
    pub(crate) fn principal(told: Told<'_>, port: u16, queue: Option<usize>) -> Result<Self> {
        let file = |name: &str| told.certificates.join(name).display().to_string();
        let (port, redis) = (port.to_string(), format!("127.0.0.1:{}", told.redis));
        let flags = [
            ("--listen-host", "127.0.0.1"),
            ("--listen-port", &port),
            ("--allowed-namespaces", "*"),
            ("--auth", AUTH),
            ("--tls-cert", &file("principal.crt")),
            ("--tls-key", &file("principal.key")),
            ("--root-ca-path", &file("ca.crt")),
            ("--jwt-key", &file("jwt.key")),
            ("--redis-server-address", &redis),
        ];
        let more = ["--enable-resource-proxy=false", "--disable-redis-proxy"];
        let mut peer = Self::new("principal", told, &flags, &more)?;
        let size = queue.map(|q| ("ARGOCD_AGENT_SEND_QUEUE_SIZE", q.to_string()));
        peer.env.extend(size);
        peer.start()?;
        Ok(peer)
    }

    /// A managed agent that finds its principal at a port.
    pub(crate) fn agent(told: Told<'_>, port: u16) -> Result<Self> {
        let file = |name: &str| told.certificates.join(name).display().to_string();
        let (port, redis) = (port.to_string(), format!("127.0.0.1:{}", told.redis));
        let flags = [
            ("--agent-mode", "managed"),
            ("--creds", "mtls:any"),
            ("--server-address", "127.0.0.1"),
            ("--server-port", &port),
            ("--root-ca-path", &file("ca.crt")),
            ("--tls-client-cert", &file("agent.crt")),
            ("--tls-client-key", &file("agent.key")),
            ("--allowed-namespaces", "*"),
            ("--redis-addr", &redis),
        ];
        let mut peer = Self::new("agent", told, &flags, &["--enable-resource-proxy=false"])?;
        peer.start()?;
        Ok(peer)
    }

    fn new(role: &str, told: Told<'_>, flags: &[(&str, &str)], more: &[&str]) -> Result<Self> {
        let config = told.kubeconfig.display().to_string();
        let metrics = free_port()?;
        let (shown, health) = (metrics.to_string(), free_port()?.to_string());
        let usual = [
            ("--kubeconfig", config.as_str()),
            ("--namespace", told.namespace),
            ("--metrics-port", &shown),
            ("--healthz-port", &health),
        ];
        let pairs = usual.iter().chain(flags).flat_map(|(flag, value)| [*flag, *value]);
        let args = std::iter::once(role).chain(pairs).chain(more.iter().copied());
        let args = args.map(str::to_owned).collect();
        let program = bowline_testbed::provide("argocd-agent").join("argocd-agent");
        Ok(Self { program, args, env: vec![], log: told.log, metrics, child: None })
    }

    /// Starts it, on what it was told.
    pub(crate) fn start(&mut self) -> Result<()> {
        let log = OpenOptions::new().create(true).append(true).open(&self.log)?;
        let mut command = Command::new(&self.program);
        command.args(&self.args).envs(self.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        self.child = Some(command.spawn().context("starting argocd-agent")?);
        Ok(())
    }

    /// What it counts under a name; nothing yet counts as none.
    pub(crate) async fn counted(&self, metric: &str) -> Result<usize> {
        let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", self.metrics)).await?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").await?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await?;
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        let count = lines.find(|(name, _)| *name == metric).map_or("0", |(_, count)| count);
        count.trim().parse().with_context(|| format!("{metric} {count}"))
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _gone = (child.kill(), child.wait());
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A Redis for them: without one they wait for it at every connection. Killed when dropped.
pub(crate) struct Redis {
    pub(crate) port: u16,
    child: Child,
}

impl Redis {
    /// One that keeps nothing.
    pub(crate) fn start(log: &Path) -> Result<Self> {
        let (port, log) = (free_port()?, std::fs::File::create(log)?);
        let program = bowline_testbed::provide("redis").join("redis-server");
        let mut command = Command::new(program);
        command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port"]);
        command.arg(port.to_string()).stdin(Stdio::null()).stdout(log).stderr(Stdio::null());
        Ok(Self { port, child: command.spawn().context("starting redis-server")? })
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _gone = (self.child.kill(), self.child.wait());
    }
}

/// A port that is free; theirs may not lie above 32767.
pub(crate) fn free_port() -> Result<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 12_000 + u16::try_from(std::process::id() % 7_000)?;
    let mut ports = (0..8_000).map(|_| first + NEXT.fetch_add(1, Ordering::Relaxed));
    let free = ports.find(|port| TcpListener::bind(("0.0.0.0", *port)).is_ok());
    free.context("no port is free")
}

/// What OpenSSL adds to certificates: ours alone, not what a distribution thinks.
const EXTENSIONS: &str = "[req]\ndistinguished_name = name\n[name]\n\
    [ca]\nbasicConstraints = critical, CA:TRUE\nkeyUsage = critical, keyCertSign, cRLSign\n\
    subjectKeyIdentifier = hash\n\
    [principal]\nextendedKeyUsage = serverAuth\nsubjectAltName = IP:127.0.0.1, DNS:localhost\n\
    [agent]\nextendedKeyUsage = clientAuth\n";

/// A CA, a principal's certificate and that of an agent of this name, and a key for tokens.
pub(crate) fn certificates(dir: &Path, agent: &str) -> Result<()> {
    std::fs::create_dir_all(dir)?;
    std::fs::write(dir.join("openssl.cnf"), EXTENSIONS)?;
    let curve = "-algorithm EC -pkeyopt ec_paramgen_curve:P-256";
    openssl(dir, &format!("genpkey {curve} -out ca.key"))?;
    openssl(
        dir,
        "req -x509 -new -config openssl.cnf -extensions ca -subj /CN=argocd-agent-ca -days 30 \
         -key ca.key -out ca.crt",
    )?;
    for (role, name) in [("principal", "principal"), ("agent", agent)] {
        openssl(dir, &format!("genpkey {curve} -out {role}.key"))?;
        let request = format!("req -new -config openssl.cnf -subj /CN={name} -key {role}.key");
        openssl(dir, &format!("{request} -out {role}.csr"))?;
        let sign = format!("x509 -req -in {role}.csr -CA ca.crt -CAkey ca.key -CAcreateserial");
        let how = format!("-days 30 -extfile openssl.cnf -extensions {role} -out {role}.crt");
        openssl(dir, &format!("{sign} {how}"))?;
    }
    openssl(dir, "genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out jwt.key")?;
    let both = [std::fs::read(dir.join("ca.crt"))?, std::fs::read(dir.join("ca.key"))?].concat();
    Ok(std::fs::write(dir.join("ca.pem"), both)?)
}

fn openssl(dir: &Path, args: &str) -> Result<()> {
    let out = Command::new("openssl").current_dir(dir).args(args.split_whitespace()).output();
    let out = out.context("openssl is missing: install openssl")?;
    let words = String::from_utf8_lossy(&out.stderr);
    ensure!(out.status.success(), "openssl {args}: {words}");
    Ok(())
}
