//! The client's half of another dialect: the same calls, without the metadata of ours.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::SystemTime;

use bowline_types::NodeId;
use futures_util::Stream;
use tokio::sync::{mpsc, oneshot};
use tonic::Request;
use tonic::codec::CompressionEncoding;

use super::connect::{self, Connected};
use super::{DialerOptions, ascii, timed};
use crate::foreign::Inbound;
use crate::link::{Core, error_of};
use crate::proto::authapi::authentication_client::AuthenticationClient;
use crate::proto::eventstreamapi::Event;
use crate::proto::eventstreamapi::event_stream_client::EventStreamClient;
use crate::proto::versionapi::version_client::VersionClient;
use crate::proto::{authapi, versionapi};
use crate::{
    AuthRequest, AuthResponse, CloudEvent, Error, ForeignLink, LinkFacts, Transport, foreign,
};

type Outbound = mpsc::Sender<CloudEvent>;

/// A client that compresses, if it is to. The clients have these methods, and no trait for them.
macro_rules! packed {
    ($client:ident, $packing:expr) => {
        match $packing {
            Some(how) => $client.send_compressed(how).accept_compressed(how),
            None => $client,
        }
    };
}

/// What goes out. A type of its own, since without a name the compiler does not see that a call with
/// it is `Send`.
struct Events(Pin<Box<dyn Stream<Item = Event> + Send>>);

impl Stream for Events {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        self.0.as_mut().poll_next(cx)
    }
}

/// A connection to a server that speaks another dialect, before anything has been said.
#[derive(Debug)]
pub struct ForeignCall {
    options: DialerOptions,
    addr: String,
    connected: Connected,
    transport: Transport,
    packing: Option<CompressionEncoding>,
}

impl ForeignCall {
    /// Connects to the first of the addresses over this transport. Of the options it heeds the
    /// address, TLS, the proxy, limits, keepalive and patience.
    pub async fn connect(options: DialerOptions, transport: Transport) -> Result<Self, Error> {
        let addr = options.hubs.first().cloned().unwrap_or_default();
        let connected = connect::connect(&options, &addr, transport).await?;
        Ok(Self { options, addr, connected, transport, packing: None })
    }

    /// The same with what is sent compressed with gzip, and what comes if the server does so too.
    pub fn compressed(self) -> Self {
        Self { packing: Some(CompressionEncoding::Gzip), ..self }
    }

    /// The server's version, as it says.
    pub async fn version(&self) -> Result<String, Error> {
        let client = VersionClient::with_origin(self.connected.service(), self.connected.origin());
        let mut client = packed!(client, self.packing);
        let answer = self.timed(client.version(versionapi::VersionRequest {})).await?;
        Ok(answer.into_inner().version)
    }

    /// Says who this is.
    pub async fn authenticate(&self, auth: AuthRequest) -> Result<AuthResponse, Error> {
        let request = authapi::AuthRequest {
            method: auth.method,
            credentials: auth.credentials.into_iter().collect::<BTreeMap<_, _>>(),
            mode: auth.mode,
            version: auth.version,
            agent_namespace: auth.namespace,
        };
        let client =
            AuthenticationClient::with_origin(self.connected.service(), self.connected.origin());
        let mut client = packed!(client, self.packing);
        let answer = self.timed(client.authenticate(request)).await?;
        Ok(response(answer.into_inner()))
    }

    /// Gets a new access token for a refresh token.
    pub async fn refresh(&self, refresh_token: String) -> Result<AuthResponse, Error> {
        let request = authapi::RefreshTokenRequest { refresh_token };
        let client =
            AuthenticationClient::with_origin(self.connected.service(), self.connected.origin());
        let mut client = packed!(client, self.packing);
        let answer = self.timed(client.refresh_token(request)).await?;
        Ok(response(answer.into_inner()))
    }

    /// Opens the stream of events. `version` is the server's, for those who ask later. That the
    /// server does not let this be is learnt from the link, by its end.
    pub fn subscribe(self, token: &str, version: String) -> Result<ForeignLink, Error> {
        let core = Core::new(NodeId::hub(), self.connected.cut(), None);
        let (outbound, request) = self.events(&core, token)?;
        let client =
            EventStreamClient::with_origin(self.connected.service(), self.connected.origin());
        let client = client.max_decoding_message_size(self.options.limits.message);
        let mut client = packed!(client, self.packing);
        let facts = LinkFacts {
            remote: self.connected.remote(),
            transport: self.transport,
            protocol: 0,
            version,
            opened: SystemTime::now(),
            counters: core.counters.clone(),
        };
        let (tell, coming) = oneshot::channel();
        let link = ForeignLink::new(facts, &core, outbound, Inbound::Coming(coming));
        tokio::spawn(async move {
            let answer = tokio::select! {
                answer = client.subscribe(request) => answer,
                () = core.until_ended() => return,
            };
            let failed = |status| self.connected.trouble().unwrap_or_else(|| error_of(status));
            let _gone = tell.send(answer.map(tonic::Response::into_inner).map_err(failed));
        });
        Ok(link)
    }

    fn events(&self, core: &Arc<Core>, token: &str) -> Result<(Outbound, Request<Events>), Error> {
        let (outbound, events) = foreign::outbound(core, self.connected.keep());
        let mut request = Request::new(Events(Box::pin(events)));
        request.metadata_mut().insert("authorization", ascii(token)?);
        Ok((outbound, request))
    }

    async fn timed<T>(
        &self,
        call: impl Future<Output = Result<T, tonic::Status>>,
    ) -> Result<T, Error> {
        timed(call, &self.connected, &self.addr, self.options.patience).await
    }
}

fn response(answer: authapi::AuthResponse) -> AuthResponse {
    AuthResponse {
        access_token: answer.access_token,
        refresh_token: answer.refresh_token,
        version: answer.version,
        namespace: answer.principal_namespace,
    }
}
