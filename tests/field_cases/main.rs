//! Failures that users of service registries have met, one test each, with the public issue in which somebody did.
//! The numbers are those of the project's list of cases.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]

#[path = "../support/mod.rs"]
mod support;

mod address;
mod beats;
mod encoding;
mod expiry;
mod filters;
mod freeze;
mod identity;
mod kinds;
mod names;
mod overlays;
mod paging;
mod push;
mod races;
mod weights;
