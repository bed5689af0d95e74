//! The gRPC front end: the native API, health, reflection; and the same services as gRPC-Web.

mod accept;
pub mod drain;
pub mod health;
pub mod native;
pub mod server;
