//! Going out through an HTTP proxy: `HTTPS_PROXY`, `NO_PROXY`, `CONNECT`.

use std::net::IpAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::connect::tcp;
use crate::{Error, websocket};

/// The longest answer of a proxy that is read.
const MOST: usize = 8 * 1024;

/// Which proxy to use for which host.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ProxyRules {
    url: Option<String>,
    except: Vec<String>,
}

impl std::fmt::Debug for ProxyRules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The URL may hold a password.
        f.debug_struct("ProxyRules").field("set", &self.url.is_some()).finish_non_exhaustive()
    }
}

/// A proxy, taken apart.
pub(super) struct Proxy {
    addr: String,
    authorization: Option<String>,
}

impl ProxyRules {
    /// No proxy.
    pub fn none() -> Self {
        Self::default()
    }

    /// This proxy (`http://user:password@host:port`), except for the hosts of a `NO_PROXY` list.
    pub fn new(url: &str, except: &str) -> Self {
        let except = except.split(',').map(|e| e.trim().to_lowercase());
        let except = except.filter(|e| !e.is_empty()).collect();
        Self { url: (!url.is_empty()).then(|| url.into()), except }
    }

    /// What the environment says, as most tools read it.
    pub fn from_env() -> Self {
        let get = |names: [&str; 2]| names.into_iter().find_map(|n| std::env::var(n).ok());
        let url = get(["HTTPS_PROXY", "https_proxy"]).unwrap_or_default();
        Self::new(&url, &get(["NO_PROXY", "no_proxy"]).unwrap_or_default())
    }

    /// Whether the proxy's URL is one.
    pub fn check(&self) -> Result<(), Error> {
        self.url.as_deref().map_or(Ok(()), |url| parse(url).map(drop))
    }

    pub(super) fn proxy_of(&self, host: &str, port: u16) -> Result<Option<Proxy>, Error> {
        let Some(url) = &self.url else { return Ok(None) };
        let host = host.to_lowercase();
        if self.except.iter().any(|rule| is_excepted(rule, &host, port)) {
            return Ok(None);
        }
        parse(url).map(Some)
    }
}

/// Whether a rule of `NO_PROXY` means this host: `*`, a name and what is below it, an address, a
/// network; each but the last perhaps with a port.
fn is_excepted(rule: &str, host: &str, port: u16) -> bool {
    if rule == "*" {
        return true;
    }
    if let Ok(address) = host.parse::<IpAddr>() {
        if let Some((network, bits)) = rule.split_once('/') {
            return is_within(address, network, bits);
        }
        if rule.parse() == Ok(address) {
            return true;
        }
    }
    let (name, rule_port) = match rule.rsplit_once(':') {
        Some((name, text)) => match text.parse::<u16>() {
            Ok(p) => (name, Some(p)),
            Err(_) => (rule, None),
        },
        None => (rule, None),
    };
    if rule_port.is_some_and(|p| p != port) {
        return false;
    }
    let name = name.trim_start_matches("*.").trim_start_matches('.');
    host == name || host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'))
}

fn is_within(address: IpAddr, network: &str, bits: &str) -> bool {
    let (Ok(network), Ok(bits)) = (network.parse::<IpAddr>(), bits.parse::<u32>()) else {
        return false;
    };
    let (a, b, width) = match (address, network) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (u128::from(a.to_bits()), u128::from(b.to_bits()), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits(), b.to_bits(), 128),
        _ => return false,
    };
    let Some(host_bits) = u32::checked_sub(width, bits) else { return false };
    a.checked_shr(host_bits).unwrap_or(0) == b.checked_shr(host_bits).unwrap_or(0)
}

fn parse(url: &str) -> Result<Proxy, Error> {
    // Never shown with its password.
    let bad = |what: &str| Error::Setting(format!("the proxy's URL {what}"));
    let rest = match url.split_once("://") {
        Some(("http", rest)) => rest,
        Some(_) => return Err(bad("must begin with http://")),
        None => url,
    };
    let rest = rest.trim_end_matches('/');
    let (user, addr) = match rest.rsplit_once('@') {
        Some((user, addr)) => (Some(user), addr),
        None => (None, rest),
    };
    let authorization = user.map(|user| {
        let (user, password) = user.split_once(':').unwrap_or((user, ""));
        websocket::basic(&unescaped(user), &unescaped(password))
    });
    let has_port = addr.rsplit_once(':').is_some_and(|(_, p)| p.parse::<u16>().is_ok());
    let addr = if has_port { addr.to_owned() } else { format!("{addr}:80") };
    if addr.starts_with(':') || addr.contains(['/', ' ']) {
        return Err(bad("has no host"));
    }
    Ok(Proxy { addr, authorization })
}

/// Undoes percent-encoding.
fn unescaped(text: &str) -> String {
    let mut out = vec![];
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let hex = tail.get(..2).and_then(|h| std::str::from_utf8(h).ok());
        match hex.and_then(|h| u8::from_str_radix(h, 16).ok()) {
            Some(byte) if first == b'%' => {
                out.push(byte);
                rest = &tail[2..];
            }
            _ => {
                out.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Asks the proxy for a line to the hub.
pub(super) async fn connect(proxy: &Proxy, host: &str, port: u16) -> Result<TcpStream, Error> {
    let failed = |what: String| Error::Proxy { proxy: proxy.addr.clone(), what };
    let mut stream = tcp(&proxy.addr).await?;
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let mut request = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n");
    if let Some(authorization) = &proxy.authorization {
        request.push_str(&format!("Proxy-Authorization: {authorization}\r\n"));
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes()).await.map_err(|e| failed(e.to_string()))?;
    let mut answer = vec![];
    // Byte by byte: what follows the answer belongs to TLS.
    while !answer.ends_with(b"\r\n\r\n") {
        if answer.len() >= MOST {
            return Err(failed("its answer is too long".into()));
        }
        answer.push(stream.read_u8().await.map_err(|e| failed(e.to_string()))?);
    }
    let text = String::from_utf8_lossy(&answer);
    let line = text.lines().next().unwrap_or_default();
    match line.split_whitespace().nth(1) {
        Some(code) if code.starts_with('2') => Ok(stream),
        _ => Err(failed(line.chars().filter(|c| !c.is_control()).take(120).collect())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_no_proxy_go_straight() {
        let rules = ProxyRules::new("http://p:3128", "a.example, .b.example,10.0.0.0/8,c:8443,::1");
        let straight = |host, port| rules.proxy_of(host, port).unwrap().is_none();
        assert!(straight("a.example", 1) && straight("x.a.example", 1) && straight("B.Example", 1));
        assert!(straight("10.1.2.3", 1) && straight("c", 8443) && straight("::1", 1));
        assert!(!straight("c", 1) && !straight("xa.example", 1) && !straight("11.0.0.1", 1));
        assert!(ProxyRules::new("http://p", "*").proxy_of("any", 1).unwrap().is_none());
        assert!(ProxyRules::none().proxy_of("any", 1).unwrap().is_none());
    }

    #[test]
    fn a_proxy_url_is_taken_apart() {
        let proxy = parse("http://user:p%40ss@proxy.example:3128/").unwrap();
        assert_eq!(proxy.addr, "proxy.example:3128");
        assert_eq!(proxy.authorization.unwrap(), websocket::basic("user", "p@ss"));
        assert_eq!(parse("proxy").unwrap().addr, "proxy:80");
        assert!(parse("socks5://x:1").is_err());
    }
}
