//! The protocol of the Nacos SDKs, spoken by a bare client to the real binary.
//!
//! Numbers of "rows" are those of the project's list of failures from the field; a real SDK is not needed for any of it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "tests measure real time and spawn freely")]
#![allow(clippy::print_stderr, reason = "the test harness shows it with the test that failed")]

mod client;
mod cross;
mod gate;
mod life;
mod light;
mod limits;
mod load;
mod names;
mod naming;
mod push;
mod server;
