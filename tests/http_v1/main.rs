//! The v1 instance API as SDKs use it, against the real binary.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]

#[path = "../support/mod.rs"]
mod support;

mod answers;
mod batch;
mod beat;
mod detail;
mod list;
mod names;
mod parameters;
mod register;
mod sdk;
mod update;
