//! Telling subscribers of changes.

pub mod sdk;
pub mod subscriber;
