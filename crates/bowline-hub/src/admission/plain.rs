//! Who may connect without TLS: agents of argocd-agent, where the operator opened a port for them.

use bowline_argocd::auth::Line;
use bowline_types::NodeId;
use bowline_wire::{
    Admission, AuthRequest, AuthResponse, BoxFuture, Call, Grant, JoinRequest, Peer, Refusal,
    RefusalCode, RenewRequest,
};

use super::{Desk, no};
use crate::dialect::{Dialect, Visit};
use crate::problem::Code;

/// The hub's word on who may connect without TLS.
pub(crate) struct Plain(pub(crate) Desk);

impl Plain {
    /// What it takes to answer, unless the caller is an agent of ours.
    fn dialect(&self, call: &Call) -> Result<&Dialect, Refusal> {
        self.0.foreign(call).ok_or_else(native)
    }
}

fn native() -> Refusal {
    let why = "this port has no TLS and is for agents of argocd-agent: use the other one";
    no(RefusalCode::PermissionDenied, Code::NoCertificate, why)
}

impl Admission for Plain {
    fn authenticate<'a>(
        &'a self,
        peer: &'a Peer,
        call: &'a Call,
        request: AuthRequest,
    ) -> BoxFuture<'a, Result<AuthResponse, Refusal>> {
        Box::pin(async move {
            let visit = Visit { peer, call, line: Line::Plaintext };
            self.0.counted(match self.dialect(call) {
                Ok(dialect) => dialect.authenticate(&self.0.0, &visit, &request).await,
                Err(refusal) => Err(refusal),
            })
        })
    }

    fn refresh<'a>(
        &'a self,
        peer: &'a Peer,
        token: String,
    ) -> BoxFuture<'a, Result<AuthResponse, Refusal>> {
        let dialect = self.0.0.dialect.as_ref().ok_or_else(native);
        let answer = dialect.and_then(|d| d.refresh(&self.0.0, peer, Line::Plaintext, &token));
        Box::pin(async move { self.0.counted(answer) })
    }

    fn subscribe<'a>(
        &'a self,
        peer: &'a Peer,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<NodeId, Refusal>> {
        let visit = Visit { peer, call, line: Line::Plaintext };
        let answer = self.dialect(call).and_then(|d| d.subscriber(&self.0.0, &visit));
        Box::pin(async move { self.0.counted(answer) })
    }

    fn join<'a>(&'a self, _: &'a Peer, _: JoinRequest) -> BoxFuture<'a, Result<Grant, Refusal>> {
        Box::pin(async move { self.0.counted(Err(native())) })
    }

    fn renew<'a>(&'a self, _: &'a Peer, _: RenewRequest) -> BoxFuture<'a, Result<Grant, Refusal>> {
        Box::pin(async move { self.0.counted(Err(native())) })
    }

    fn version(&self) -> String {
        self.0.version()
    }
}
