//! Nomina: a clustered service registry.

pub mod api;
pub mod cli;
pub mod clock;
pub mod config;
pub mod data_dir;
pub mod error;
pub mod listen;
pub mod machine;
pub mod naming;
pub mod node;
pub mod push;
pub mod readiness;
pub mod registry;
pub mod setting;
pub mod shutdown;
pub mod stop;
pub mod telemetry;
pub mod wire;
