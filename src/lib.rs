//! Nomina: a clustered service registry.

pub mod api;
pub mod clock;
pub mod duration_text;
pub mod error;
pub mod registry;
pub mod shutdown;
pub mod wire;
