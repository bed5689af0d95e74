//! Several nodes as processes of the real binary: what clients of any of them see.
//!
//! Numbers of "rows" are those of the project's list of failures from the field.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "tests measure real time and spawn freely")]
#![allow(clippy::print_stderr, reason = "the test harness shows it with the test that failed")]

mod basics;
mod churn;
#[allow(dead_code, reason = "another test program uses the rest")]
#[path = "../grpc_sdk/client.rs"]
mod client;
mod crashes;
mod fleet;
mod joining;
mod names;
mod namespaces;
mod network;
mod publishers;
mod rolling;
mod routing;
mod server;
#[path = "../support/mod.rs"]
mod support;
mod witness;
