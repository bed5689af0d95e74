//! Telling subscribers of changes.

pub mod subscriber;
