//! What `build.rs` makes of `proto/`.

macro_rules! generated {
    ($(#[$doc:meta])* $name:ident = $package:literal) => {
        $(#[$doc])*
        #[allow(
            missing_docs,
            unreachable_pub,
            unused_qualifications,
            clippy::all,
            clippy::pedantic,
            clippy::allow_attributes_without_reason,
            reason = "generated; which of these fire differs from message to message"
        )]
        pub mod $name {
            tonic::include_proto!($package);
        }
    };
}

generated!(
    /// `authapi`.
    authapi = "authapi"
);
generated!(
    /// `versionapi`.
    versionapi = "versionapi"
);
generated!(
    /// `bowline.join.v1`.
    join = "bowline.join.v1"
);
generated!(
    /// `bowline.tunnel.v1`.
    tunnel = "bowline.tunnel.v1"
);
generated!(
    /// `bowline.sync.v1`: what [`crate::codec`] reads and writes by hand, for those who do not.
    sync = "bowline.sync.v1"
);
generated!(
    /// `eventstreamapi`.
    eventstreamapi = "eventstreamapi"
);

// Generated code refers to other packages by their path from a common root.
pub use io::cloudevents::v1 as cloudevents;

/// The root of `io.cloudevents.v1`.
pub mod io {
    /// `io.cloudevents`.
    pub mod cloudevents {
        generated!(
            /// `io.cloudevents.v1`.
            v1 = "io.cloudevents.v1"
        );
    }
}
