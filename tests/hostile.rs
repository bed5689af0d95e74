//! Bad input over every route and parameter: always a clear refusal, nothing stored, no panic, and a connection that
//! lives on where HTTP allows it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod support;

#[path = "hostile/bytes.rs"]
mod bytes;
#[path = "hostile/routes.rs"]
mod routes;
#[path = "hostile/slow.rs"]
mod slow;
#[path = "hostile/values.rs"]
mod values;
