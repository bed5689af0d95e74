//! Runs the real binary for a test and talks to it.
//!
//! * [`server::Server`]: one process in a directory of its own, with its log; ends with the value.
//! * [`cluster::Cluster`]: several processes that are members of one cluster.
//! * [`http`]: an HTTP/1.1 client that sends exactly the bytes that it is told to.
//! * [`naming`]: the calls that most tests need, with what a user expects of them.
//! * [`beater::Beater`]: keeps instances alive from a thread of its own.
//! * [`wait::wait_until`]: waits for a condition, and tells the last state if it does not come about.

#![allow(dead_code, reason = "each test program uses a part")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "tests measure real time")]
#![allow(clippy::print_stderr, reason = "the test harness shows it with the test that failed")]

pub mod beater;
pub mod cluster;
pub mod http;
pub mod naming;
pub mod server;
pub mod wait;
