//! What goes over the wire, and its translation to and from the values of the registry. No I/O.

pub mod native;

/// The code generated from `proto/`. Its documentation is that of the protos.
#[allow(clippy::all, clippy::pedantic, reason = "generated code")]
pub mod pb {
    tonic::include_proto!("nomina.registry.v1");

    /// Descriptors of everything that clients may call, encoded as a `google.protobuf.FileDescriptorSet`. For server
    /// reflection.
    pub const CLIENT_API: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/client_api.bin"));
}
