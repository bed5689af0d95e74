//! The front ends: decode, call the use cases of `naming`, encode.

pub mod http;
