//! The gRPC front end: the native API, the protocol of the Nacos SDKs, health, reflection; and gRPC-Web of the native API.

pub mod accept;
pub mod connection;
pub mod drain;
mod gather;
pub mod health;
pub mod metrics;
pub mod native;
pub mod sdk;
pub mod server;
pub mod serving;
pub mod transport;
