//! An agent whose control plane is an unmodified principal of argocd-agent. What the principal says
//! is kept on a shelf of the agent's own, on the principal's behalf; all else is as with a hub.

mod options;

pub use options::{
    ClientCertificate, Pem, PrincipalCredentials, PrincipalLine, PrincipalOptions, PrincipalRoots,
    PrincipalTransport,
};
