//! The front ends: decode, call the use cases of `naming`, encode.

pub mod grpc;
pub mod http;
pub mod reply;
