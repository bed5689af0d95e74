//! The front ends: they decode what clients send, call the use cases, and encode what comes back.

pub mod grpc;
pub mod reply;
