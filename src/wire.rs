//! Wire forms and the registry's values, translated into each other. No I/O.

mod host;
pub mod http_v1;
pub mod json;
pub mod native;
pub mod peer;
pub mod sdk;

/// The code generated from `proto/`. Its documentation is that of the protos.
#[allow(clippy::all, clippy::pedantic, reason = "generated code")]
pub mod pb {
    tonic::include_proto!("nomina.registry.v1");

    /// What the members of a cluster say to each other.
    pub mod peer {
        tonic::include_proto!("nomina.peer.v1");
    }

    /// Descriptors of everything that clients may call, encoded as a `google.protobuf.FileDescriptorSet`. For server
    /// reflection.
    pub const CLIENT_API: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/client_api.bin"));
}
