//! Pushes to clients of the v1 HTTP API by UDP.

pub mod agent;
mod settings;

pub use self::settings::{OtherAddresses, Settings};
