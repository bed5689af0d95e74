//! Nomina: a clustered service registry.
//!
//! An import points to the same folder or to a lower layer; `tests/layers.rs` keeps it so.
//!
//! | layer | modules | job |
//! | --- | --- | --- |
//! | ground | [`error`] [`clock`] [`shutdown`] [`setting`] [`quiet`] [`readiness`] [`machine`] [`stop`] | codes, time, tasks, what a setting is, whether the node serves |
//! | core | [`registry`] | what is registered, who may change it, when it ends; no I/O, no wire format |
//! | wire | [`wire`] | wire forms and the core's values, translated into each other; no I/O |
//! | cluster | [`cluster`] | the other nodes: who they are, who lives, who owns what, and what is said between them |
//! | push | [`push`] | who is told of changes, and how |
//! | use cases | [`naming`] | validate once, change the registry, read it |
//! | front ends | [`api`] | decode, call a use case, encode: HTTP v1, native gRPC, the SDKs' gRPC |
//! | edges | [`config`] [`telemetry`] [`data_dir`] [`listen`] [`node`] [`cli`] | settings, logs, files, sockets, wiring |

pub mod api;
pub mod cli;
pub mod clock;
pub mod cluster;
pub mod config;
pub mod data_dir;
pub mod error;
pub mod listen;
pub mod machine;
pub mod naming;
pub mod node;
pub mod push;
pub mod quiet;
pub mod readiness;
pub mod registry;
pub mod setting;
pub mod shutdown;
pub mod stop;
pub mod telemetry;
pub mod wire;
