//! What the client of the SDK protocol needs to know.

pub use super::support::wait::SOON;
