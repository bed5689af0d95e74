//! Nomina: a clustered service registry.

pub mod clock;
pub mod config;
pub mod error;
pub mod setting;
pub mod shutdown;
pub mod telemetry;
