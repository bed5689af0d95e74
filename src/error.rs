//! The closed set of ways in which an operation can fail, as clients see it.
//!
//! Every operation has an error enum of its own that lists what can happen to it; each maps onto a [`Code`] through
//! [`Classify`], and only a `Code` leaves the process: `api/reply.rs` turns it into a gRPC status or an HTTP answer.

use std::fmt;

/// What kind of failure an operation ended with. The only vocabulary that front ends translate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// The request itself is wrong; the same request can never succeed.
    InvalidArgument,
    /// What the request names does not exist.
    NotFound,
    /// What the request would create exists already.
    AlreadyExists,
    /// The request is well formed but the present state forbids it (a service that is not empty, another kind).
    FailedPrecondition,
    /// A limit that is a setting was reached; the caller may try again later.
    ResourceExhausted,
    /// The caller may not do this.
    PermissionDenied,
    /// This node cannot serve now (starting, draining); another node may.
    Unavailable,
    /// This build does not offer what was asked for.
    Unimplemented,
    /// A fault of ours.
    Internal,
}

impl Code {
    /// The HTTP status that stands for this code on the v1 surface (Nacos 2.5: 400 for every rejected argument).
    #[must_use]
    pub const fn http_status(self) -> u16 {
        match self {
            Self::InvalidArgument | Self::AlreadyExists | Self::FailedPrecondition => 400,
            Self::PermissionDenied => 403,
            Self::NotFound => 404,
            Self::ResourceExhausted | Self::Unavailable => 503,
            Self::Unimplemented => 501,
            Self::Internal => 500,
        }
    }

    /// The number of the gRPC status code (`google.rpc.Code`).
    #[must_use]
    pub const fn grpc_number(self) -> i32 {
        match self {
            Self::InvalidArgument => 3,
            Self::NotFound => 5,
            Self::AlreadyExists => 6,
            Self::PermissionDenied => 7,
            Self::ResourceExhausted => 8,
            Self::FailedPrecondition => 9,
            Self::Unimplemented => 12,
            Self::Internal => 13,
            Self::Unavailable => 14,
        }
    }

    /// Whether the same request may succeed when it is sent again a little later.
    #[must_use]
    pub const fn retryable(self) -> bool {
        match self {
            Self::ResourceExhausted | Self::Unavailable => true,
            Self::InvalidArgument
            | Self::NotFound
            | Self::AlreadyExists
            | Self::FailedPrecondition
            | Self::PermissionDenied
            | Self::Unimplemented
            | Self::Internal => false,
        }
    }
}

/// An error that knows its [`Code`] and, for a rejected argument, which field of the request it is about.
pub trait Classify: fmt::Display {
    /// The code under which this error leaves the process.
    fn code(&self) -> Code;

    /// The field of the request that is at fault, in the words of the domain (`port`, `metadata`, `cluster`);
    /// `None` when no single field is.
    fn field(&self) -> Option<&'static str> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_overload_and_absence_are_retryable() {
        assert!(Code::ResourceExhausted.retryable());
        assert!(Code::Unavailable.retryable());
        assert!(!Code::InvalidArgument.retryable());
        assert!(!Code::Internal.retryable());
    }
}
