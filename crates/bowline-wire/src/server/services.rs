//! The RPCs, each a thin layer over [`Admission`](crate::Admission) and [`Link`](crate::Link).

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::SystemTime;

use bowline_types::NodeId;
use futures_util::{Stream, StreamExt};
use http::{Request as HttpRequest, Response as HttpResponse};
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::codec::CompressionEncoding;
use tonic::metadata::{KeyAndValueRef, MetadataMap};
use tonic::{Request, Response, Status, Streaming};
use tower::Service;

use super::accept::Connection;
use super::registry::Entry;
use super::{Incoming, Shared};
use crate::error::{Refusal, RefusalCode};
use crate::link::{self, Core, Inbound, ServerStream};
use crate::proto::{authapi, eventstreamapi as events, join, tunnel as wire_tunnel, versionapi};
use crate::tunnel::{self, Tunnel};
use crate::{
    AuthRequest, AuthResponse, Call, Codec, Error, ForeignLink, Grant, JoinRequest, LinkFacts,
    RenewRequest, Transport,
};
use crate::{foreign, skew};

/// Answers one request.
pub(super) async fn route(
    request: HttpRequest<Body>,
    shared: Arc<Shared>,
    transport: Transport,
) -> HttpResponse<Body> {
    let limit = shared.limits.message;
    let hub = Arc::new(Hub { shared, transport });
    let service = request.uri().path().split('/').nth(1).unwrap_or_default().to_owned();
    macro_rules! serve {
        ($server:path $(, $setting:ident)*) => {{
            let server = <$server>::from_arc(hub).max_decoding_message_size(limit);
            let mut server = server$(.$setting(CompressionEncoding::Gzip))*;
            let Ok(response) = server.call(request).await;
            recoded(response)
        }};
    }
    match service.as_str() {
        // Agents of argocd-agent may compress what they say, and are answered in kind. A native link
        // packs its frames itself, and neither asks for this nor uses it.
        "authapi.Authentication" => {
            use authapi::authentication_server::AuthenticationServer;
            serve!(AuthenticationServer<Hub>, accept_compressed, send_compressed)
        }
        "versionapi.Version" => {
            use versionapi::version_server::VersionServer;
            serve!(VersionServer<Hub>, accept_compressed, send_compressed)
        }
        "eventstreamapi.EventStream" => {
            use events::event_stream_server::EventStreamServer;
            serve!(EventStreamServer<Hub>, accept_compressed, send_compressed)
        }
        "bowline.join.v1.Join" => serve!(join::join_server::JoinServer<Hub>),
        "bowline.tunnel.v1.Tunnel" => serve!(wire_tunnel::tunnel_server::TunnelServer<Hub>),
        _ => Status::unimplemented("no such service").into_http(),
    }
}

/// What the RPC library says of a message that it could not read lacks our code.
fn recoded(response: HttpResponse<Body>) -> HttpResponse<Body> {
    // A call that fails before it is answered has its status among the headers.
    match Status::from_header_map(response.headers()) {
        Some(status) if is_unread(&status) => coded(status).into_http(),
        _ => response,
    }
}

/// None of our own answers has these.
fn is_unread(status: &Status) -> bool {
    use tonic::Code::{DataLoss, Internal, OutOfRange, Unimplemented};
    let ours = status.message().starts_with(['W', 'B']);
    matches!(status.code(), DataLoss | Internal | OutOfRange) && !ours
        || status.code() == Unimplemented && status.message().contains("compression")
}

fn coded(status: Status) -> Status {
    match link::error_of(status) {
        error @ (Error::TooLarge { .. } | Error::Malformed { .. }) => link::told(&error),
        _ => link::told(&Error::Malformed { frame: "message", what: "not a gRPC frame" }),
    }
}

/// The services of one hub, as one request sees them.
pub(crate) struct Hub {
    shared: Arc<Shared>,
    transport: Transport,
}

impl Hub {
    /// Who calls, and what the call says beside its message.
    fn caller<T>(&self, request: &Request<T>) -> Result<(Arc<Connection>, Call), Status> {
        let connection = request.extensions().get::<Arc<Connection>>();
        let connection = connection.ok_or_else(|| Status::internal("no connection"))?;
        Ok((connection.clone(), call_of(request.metadata(), self.transport)))
    }

    /// The node behind a call that needs an access token.
    async fn node<T>(
        &self,
        request: &Request<T>,
    ) -> Result<(Arc<Connection>, Call, NodeId), Status> {
        let (connection, call) = self.caller(request)?;
        let node = self.shared.admission.subscribe(&connection.peer, &call).await;
        Ok((connection, call, node.map_err(Refusal::into_status)?))
    }

    /// The stream of a peer that the hub let in without a native protocol.
    async fn subscribe_foreign(
        &self,
        connection: &Connection,
        call: &Call,
        node: NodeId,
        inbound: Streaming<events::Event>,
    ) -> Result<Response<EventStream>, Status> {
        let core = Core::new(node, connection.cut.clone(), None);
        let entry = Entry::new(&self.shared, &core);
        let facts = LinkFacts {
            remote: connection.peer.remote,
            transport: self.transport,
            protocol: 0,
            version: call.metadata.get("user-agent").cloned().unwrap_or_default(),
            opened: SystemTime::now(),
            counters: core.counters.clone(),
        };
        let (outbound, sent) = foreign::outbound(&core, entry);
        let link =
            ForeignLink::new(facts, &core, outbound, foreign::Inbound::Open(Box::new(inbound)));
        let gone = |_| Status::unavailable("the hub is going away");
        self.shared.incoming.send(Incoming::Foreign(Box::new(link))).await.map_err(gone)?;
        Ok(Response::new(Box::pin(sent.map(Ok)) as EventStream))
    }

    fn codec(&self) -> Codec {
        Codec::new(self.shared.node.clone(), self.shared.limits.clone())
    }
}

/// Splits metadata into what the protocol knows and the rest.
fn call_of(metadata: &MetadataMap, transport: Transport) -> Call {
    let text = |name: &str| metadata.get(name).and_then(|v| v.to_str().ok()).map(str::to_owned);
    let mut rest = BTreeMap::new();
    for entry in metadata.iter() {
        if let KeyAndValueRef::Ascii(key, value) = entry
            && let Ok(value) = value.to_str()
            && key != "authorization"
        {
            rest.insert(key.as_str().to_owned(), value.to_owned());
        }
    }
    let protocol = text(skew::METADATA).and_then(|p| p.parse().ok());
    Call { token: text("authorization"), protocol, metadata: rest, transport }
}

/// The protocol that both ends speak; a peer without one is not native.
fn agreed(call: &Call, ours: u32) -> Result<u32, Status> {
    let Some(theirs) = call.protocol else {
        let why = format!("no {} metadata: the argocd-agent dialect is not served", skew::METADATA);
        return Err(Status::failed_precondition(why));
    };
    skew::agree(ours, theirs).map_err(|e| Status::failed_precondition(format!("{}: {e}", e.code())))
}

type EventStream = Pin<Box<dyn Stream<Item = Result<events::Event, Status>> + Send>>;

#[tonic::async_trait]
impl events::event_stream_server::EventStream for Hub {
    type SubscribeStream = EventStream;

    async fn subscribe(
        &self,
        request: Request<Streaming<events::Event>>,
    ) -> Result<Response<EventStream>, Status> {
        let (connection, call, node) = self.node(&request).await?;
        if self.shared.draining.is_cancelled() {
            return Err(Status::unavailable("the hub is going away"));
        }
        if call.protocol.is_none() {
            return self.subscribe_foreign(&connection, &call, node, request.into_inner()).await;
        }
        let protocol = agreed(&call, self.shared.protocol)?;
        let desk = Some(self.shared.desk.clone());
        let core = Core::new(node, connection.cut.clone(), desk);
        let entry = Entry::new(&self.shared, &core);
        let facts = LinkFacts {
            remote: connection.peer.remote,
            transport: self.transport,
            protocol,
            version: call.metadata.get(skew::VERSION).cloned().unwrap_or_default(),
            opened: SystemTime::now(),
            counters: core.counters.clone(),
        };
        let inbound = Inbound::new(request.into_inner(), self.codec(), core.clone(), None);
        let outbound = ServerStream::new(core.clone(), self.codec(), entry);
        let link = link::assemble(facts, &core, inbound, None);
        let gone = |_| Status::unavailable("the hub is going away");
        self.shared.incoming.send(Incoming::Link(link)).await.map_err(gone)?;
        let mut response = Response::new(Box::pin(outbound) as EventStream);
        skew::put(response.metadata_mut(), self.shared.protocol);
        Ok(response)
    }

    async fn push(
        &self,
        request: Request<Streaming<events::Event>>,
    ) -> Result<Response<events::PushSummary>, Status> {
        let (_, call, node) = self.node(&request).await?;
        agreed(&call, self.shared.protocol)?;
        let (codec, mut stream) = (self.codec(), request.into_inner());
        let mut summary = events::PushSummary { result: "ok".into(), received: 0, processed: 0 };
        while let Some(event) = stream.message().await.map_err(coded)? {
            summary.received = summary.received.saturating_add(1);
            let frame = match codec.decode(event.event.unwrap_or_default()) {
                Ok((frame, _)) => frame,
                Err(error) if error.is_skippable() => continue,
                Err(error) => return Err(link::told(&error)),
            };
            let gone = |_| Status::unavailable("the hub is going away");
            let pushed = Incoming::Pushed(node.clone(), frame);
            self.shared.incoming.send(pushed).await.map_err(gone)?;
            summary.processed = summary.processed.saturating_add(1);
        }
        Ok(Response::new(summary))
    }

    async fn ping(
        &self,
        request: Request<events::PingRequest>,
    ) -> Result<Response<events::PongReply>, Status> {
        self.node(&request).await?;
        Ok(Response::new(events::PongReply {}))
    }
}

#[tonic::async_trait]
impl authapi::authentication_server::Authentication for Hub {
    async fn authenticate(
        &self,
        request: Request<authapi::AuthRequest>,
    ) -> Result<Response<authapi::AuthResponse>, Status> {
        let (connection, call) = self.caller(&request)?;
        if call.protocol.is_some() {
            agreed(&call, self.shared.protocol)?;
        }
        let r = request.into_inner();
        let asked = AuthRequest {
            method: r.method,
            credentials: r.credentials,
            mode: r.mode,
            version: r.version,
            namespace: r.agent_namespace,
        };
        let answer = self.shared.admission.authenticate(&connection.peer, &call, asked).await;
        let mut response = answer.map(auth_response).map_err(Refusal::into_status)?;
        skew::put(response.metadata_mut(), self.shared.protocol);
        Ok(response)
    }

    async fn refresh_token(
        &self,
        request: Request<authapi::RefreshTokenRequest>,
    ) -> Result<Response<authapi::AuthResponse>, Status> {
        let (connection, _) = self.caller(&request)?;
        let token = request.into_inner().refresh_token;
        let answer = self.shared.admission.refresh(&connection.peer, token).await;
        answer.map(auth_response).map_err(Refusal::into_status)
    }
}

fn auth_response(a: AuthResponse) -> Response<authapi::AuthResponse> {
    Response::new(authapi::AuthResponse {
        access_token: a.access_token,
        refresh_token: a.refresh_token,
        version: a.version,
        principal_namespace: a.namespace,
    })
}

#[tonic::async_trait]
impl versionapi::version_server::Version for Hub {
    async fn version(
        &self,
        _: Request<versionapi::VersionRequest>,
    ) -> Result<Response<versionapi::VersionResponse>, Status> {
        let version = self.shared.admission.version();
        Ok(Response::new(versionapi::VersionResponse { version }))
    }
}

#[tonic::async_trait]
impl join::join_server::Join for Hub {
    async fn join(
        &self,
        request: Request<join::JoinRequest>,
    ) -> Result<Response<join::Grant>, Status> {
        let (connection, _) = self.caller(&request)?;
        let r = request.into_inner();
        let asked = JoinRequest {
            token_id: r.token_id,
            token_secret: r.token_secret.into(),
            csr: r.csr.into(),
            head_key: r.head_key.into(),
            agent_version: r.agent_version,
        };
        let grant = self.shared.admission.join(&connection.peer, asked).await;
        grant.map(granted).map_err(Refusal::into_status)
    }

    async fn renew(
        &self,
        request: Request<join::RenewRequest>,
    ) -> Result<Response<join::Grant>, Status> {
        let (connection, _) = self.caller(&request)?;
        if connection.peer.certificate.is_none() {
            let refusal = Refusal::unauthenticated("renewing needs a client certificate");
            return Err(refusal.into_status());
        }
        let r = request.into_inner();
        let asked = RenewRequest {
            csr: r.csr.into(),
            head_key: r.head_key.into(),
            agent_version: r.agent_version,
        };
        let grant = self.shared.admission.renew(&connection.peer, asked).await;
        grant.map(granted).map_err(Refusal::into_status)
    }
}

fn granted(grant: Grant) -> Response<join::Grant> {
    let bytes = |list: Vec<Vec<u8>>| list.into_iter().map(Into::into).collect();
    Response::new(join::Grant {
        chain: bytes(grant.chain),
        authorities: bytes(grant.authorities),
        node: grant.node.to_string(),
    })
}

type Chunks = Pin<Box<dyn Stream<Item = Result<wire_tunnel::Chunk, Status>> + Send>>;

#[tonic::async_trait]
impl wire_tunnel::tunnel_server::Tunnel for Hub {
    type OpenStream = Chunks;

    async fn open(
        &self,
        request: Request<Streaming<wire_tunnel::Chunk>>,
    ) -> Result<Response<Chunks>, Status> {
        let (connection, call, node) = self.node(&request).await?;
        let id = call.metadata.get(tunnel::ID).cloned().unwrap_or_default();
        // First, so that a cut finds whatever the desk hands out.
        let entry = Entry::of_tunnel(&self.shared, &node, &connection.cut);
        let (sender, outbound) = tunnel::channel();
        let opened = Tunnel::new(request.into_inner(), sender, None);
        if !self.shared.desk.opened(&node, &id, opened) {
            let refusal = Refusal::new(RefusalCode::NotFound, "no such tunnel was asked for");
            return Err(refusal.into_status());
        }
        // It leaves the registry when the hub's end is dropped, or the connection.
        let chunks = ReceiverStream::new(outbound).map(move |chunk| {
            let _entered = &entry;
            Ok(chunk)
        });
        Ok(Response::new(Box::pin(chunks.take_until(connection.cut.clone().cancelled_owned()))))
    }
}
