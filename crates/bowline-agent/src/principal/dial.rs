//! From an address to a stream of events, and to the name that the principal has for this agent.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bowline_argocd::auth::{CLIENT_ID, CLIENT_SECRET};
use bowline_argocd::claims::{Glance, TokenError};
use bowline_identity::{ClientTls, Pair, TrustBundle, Validity, tls, trust};
use bowline_resources::Mode;
use bowline_types::NodeId;
use bowline_wire::{
    AuthRequest, Code, DialerOptions, ForeignCall, ForeignLink, Keepalive, ProxyRules, RefusalCode,
    Transport,
};

use super::PrincipalTransport;
use super::options::{Pem, PrincipalCredentials, PrincipalLine, PrincipalOptions, PrincipalRoots};

/// What a principal puts before its version.
const VERSION_PREFIX: &str = "argocd-agent-";
/// How long a ping below the calls may take.
const PONG: Duration = Duration::from_secs(20);

/// Why there is no line to the principal. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A certificate or key cannot be read.
    #[error("reading {what}")]
    Read {
        what: &'static str,
        #[source]
        source: io::Error,
    },
    /// The CA cannot be used.
    #[error("the CA of the principal's certificate cannot be used")]
    Roots(#[from] trust::Error),
    /// The certificate and its key cannot be used.
    #[error("this agent's certificate cannot be used")]
    Certificate(#[from] tls::Error),
    /// No connection, or a no.
    #[error(transparent)]
    Wire(#[from] bowline_wire::Error),
    /// The token cannot be read.
    #[error("the principal's access token cannot be read")]
    Token(#[from] TokenError),
    /// The name in the token is none.
    #[error("the principal calls this agent {0:?}, which is no name")]
    Name(String),
    /// The name or the mode in the token is another.
    #[error("the principal calls this {found}, and this folder is that of {wanted}")]
    Another { wanted: String, found: String },
}

impl Error {
    /// What a person can do about it.
    pub(crate) fn advice(&self) -> &'static str {
        match self {
            Self::Read { .. } | Self::Roots(_) | Self::Certificate(_) => {
                "see --root-ca-path, --tls-client-cert and --tls-client-key"
            }
            Self::Wire(error) if error.code() == Code::Tls => {
                "see that the CA is that of this principal's certificate, and that it knows the one \
                 of this agent's"
            }
            Self::Wire(bowline_wire::Error::Refused(no))
                if no.code == RefusalCode::Unauthenticated =>
            {
                "see --creds here and --auth at the principal; its log says more"
            }
            Self::Wire(_) => {
                "this agent goes on by itself; see that the address, the proxy and the firewall fit"
            }
            Self::Token(_) | Self::Name(_) => "see that this is a principal of argocd-agent",
            Self::Another { .. } => "give each agent a folder of its own with --data",
        }
    }

    /// Whether it is about who this agent or the principal is, and not about the way between them.
    pub(crate) fn is_about_who(&self) -> bool {
        use RefusalCode::{FailedPrecondition, PermissionDenied, Unauthenticated};
        match self {
            Self::Wire(bowline_wire::Error::Refused(no)) => {
                matches!(no.code, Unauthenticated | PermissionDenied | FailedPrecondition)
            }
            Self::Wire(error) => error.code() == Code::Tls,
            Self::Read { .. } | Self::Roots(_) | Self::Certificate(_) => false,
            Self::Token(_) | Self::Name(_) | Self::Another { .. } => true,
        }
    }

    /// It and all that caused it, on one line.
    pub(crate) fn chain(&self) -> String {
        let mut out = self.to_string();
        let mut next = std::error::Error::source(self);
        while let Some(source) = next {
            out.push_str(": ");
            out.push_str(&source.to_string());
            next = source.source();
        }
        out
    }
}

/// How to reach a principal.
#[derive(Debug)]
pub(crate) struct Dial {
    pub(super) options: PrincipalOptions,
    pub(super) proxy: ProxyRules,
    /// The agent's own namespace on its cluster.
    pub(super) namespace: String,
}

/// What a principal says of itself and of this agent.
#[derive(Clone, Debug)]
pub(crate) struct Admitted {
    pub(crate) name: NodeId,
    pub(crate) mode: Mode,
    /// The principal's version.
    pub(crate) version: String,
    /// The namespace of Argo CD there.
    pub(crate) namespace: String,
    token: String,
}

impl Dial {
    /// Asks who this agent is.
    pub(crate) async fn ask(&self) -> Result<Admitted, Error> {
        Ok(self.admitted().await?.1)
    }

    /// Opens the stream of events.
    pub(crate) async fn open(&self) -> Result<(ForeignLink, Admitted), Error> {
        let (call, admitted) = self.admitted().await?;
        let link = call.subscribe(&admitted.token, admitted.version.clone())?;
        Ok((link, admitted))
    }

    /// When the certificate holds that is shown; none if none is, or it cannot be read.
    pub(crate) fn validity(&self) -> Option<Validity> {
        Some(self.pair().ok()??.validity())
    }

    async fn admitted(&self) -> Result<(ForeignCall, Admitted), Error> {
        let transport = match self.options.transport {
            PrincipalTransport::Http2 => Transport::Http2,
            PrincipalTransport::WebSocket => Transport::WebSocket,
        };
        let mut call = ForeignCall::connect(self.dialer(transport)?, transport).await?;
        if self.options.compression {
            call = call.compressed();
        }
        // A principal takes no agent but those of its own version.
        let version = call.version().await?;
        let bare = version.strip_prefix(VERSION_PREFIX).unwrap_or(&version).to_owned();
        let said = call.authenticate(self.auth(&bare)).await?;
        let client = Glance::of(&said.access_token)?.client;
        let name = NodeId::new(&client.name).map_err(|_| Error::Name(client.name.clone()))?;
        let admitted = Admitted {
            name,
            mode: client.mode,
            version: bare,
            namespace: said.namespace,
            token: said.access_token,
        };
        Ok((call, admitted))
    }

    fn auth(&self, version: &str) -> AuthRequest {
        let mut auth = AuthRequest {
            mode: self.options.mode.to_string(),
            version: version.to_owned(),
            namespace: self.namespace.clone(),
            ..AuthRequest::default()
        };
        auth.method = match &self.options.credentials {
            PrincipalCredentials::Mtls => "mtls".into(),
            PrincipalCredentials::Header => "header".into(),
            PrincipalCredentials::UserPass { name, secret } => {
                auth.credentials.insert(CLIENT_ID.into(), name.clone());
                auth.credentials.insert(CLIENT_SECRET.into(), secret.clone());
                "userpass".into()
            }
        };
        auth
    }

    fn dialer(&self, transport: Transport) -> Result<DialerOptions, Error> {
        let nobody = Arc::new(AuthRequest::default());
        let mut dial = DialerOptions::new(NodeId::hub(), self.options.address.clone(), nobody);
        dial.tls = self.tls()?.map(|tls| tls.config());
        dial.proxy = self.proxy.clone();
        dial.keepalive = match (transport, self.options.keepalive) {
            // Pings of WebSocket are none of gRPC's business.
            (Transport::WebSocket, _) => Keepalive::AGENT,
            (Transport::Http2, Some(every)) => Keepalive { every, within: PONG },
            (Transport::Http2, None) => Keepalive::OFF,
        };
        Ok(dial)
    }

    fn tls(&self) -> Result<Option<ClientTls>, Error> {
        let PrincipalLine::Tls { roots, versions, .. } = &self.options.line else {
            return Ok(None);
        };
        let pair = self.pair()?;
        let tls = match roots {
            PrincipalRoots::Insecure => ClientTls::insecure(pair.as_ref(), *versions)?,
            PrincipalRoots::Pem(pem) => {
                let bundle = TrustBundle::from_pem(&read(pem, "the CA")?)?;
                ClientTls::foreign(pair.as_ref(), &bundle, *versions)?
            }
        };
        Ok(Some(tls))
    }

    fn pair(&self) -> Result<Option<Pair>, Error> {
        let PrincipalLine::Tls { client: Some(client), .. } = &self.options.line else {
            return Ok(None);
        };
        let certificate = read(&client.certificate, "this agent's certificate")?;
        let key = read(&client.key, "this agent's key")?;
        Ok(Some(Pair::from_pems(&certificate, &key)?))
    }
}

fn read(pem: &Pem, what: &'static str) -> Result<String, Error> {
    pem.read().map_err(|source| Error::Read { what, source })
}
