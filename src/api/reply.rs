//! The one place where a [`Code`] becomes a gRPC status, with details.

use std::time::Duration;

use tonic::Status;
use tonic_types::{ErrorDetails, StatusExt};

use crate::{
    error::{Classify, Code},
    readiness::Readiness,
};

/// The domain in every `google.rpc.ErrorInfo`.
pub const DOMAIN: &str = "nomina";

/// How long a client should wait before it sends a refused request again. A full write queue is worked off in a few
/// tens of milliseconds, a start in well under a second.
pub const RETRY_DELAY: Duration = Duration::from_millis(500);

/// The gRPC status of `error`: `ErrorInfo` always, `BadRequest` if a field is at fault, `RetryInfo` if it is worth a
/// second try.
pub fn status(error: &(impl Classify + ?Sized)) -> Status {
    let code = error.code();
    let message = error.to_string();
    let grpc = tonic::Code::from(code.grpc_number());
    let mut details = error_info(grpc);
    if let Some(field) = error.field() {
        details.add_bad_request_violation(field, message.clone());
    }
    if code.retryable() {
        details.set_retry_info(Some(RETRY_DELAY));
    }
    Status::with_error_details(grpc, message, details)
}

/// The refusal of a new call while this node does not serve; `None` if it does, and during the drain.
pub fn not_serving(readiness: &Readiness) -> Option<Status> {
    match readiness {
        Readiness::Starting => Some(status(&NotServing("starting".into()))),
        Readiness::Joining(reason) => Some(status(&NotServing((&**reason).into()))),
        Readiness::Ready | Readiness::Draining => None,
    }
}

/// The status of a request that tonic could not read, in our words: it is the client's fault, not ours.
///
/// tonic reports a broken message as INTERNAL and one over the size limit as OUT_OF_RANGE.
pub fn unreadable(status: &Status) -> Status {
    let code = match status.code() {
        tonic::Code::Internal => tonic::Code::InvalidArgument,
        tonic::Code::OutOfRange => tonic::Code::ResourceExhausted,
        other => other,
    };
    let message = match status.message() {
        "" if code == tonic::Code::Unimplemented => "no such service or method",
        message => message,
    };
    Status::with_error_details_and_metadata(code, message, error_info(code), status.metadata().clone())
}

/// Gives an answer that tonic made by itself (unknown method, unreadable request) the code and the details that ours
/// have. Every other answer passes as it is.
pub fn complete<B: Default>(response: http::Response<B>) -> http::Response<B> {
    match Status::from_header_map(response.headers()) {
        Some(status) if status.code() != tonic::Code::Ok && status.details().is_empty() => {
            unreadable(&status).into_http()
        }
        Some(_) | None => response,
    }
}

fn error_info(code: tonic::Code) -> ErrorDetails {
    ErrorDetails::with_error_info(reason(code), DOMAIN, [])
}

/// The reason in `ErrorInfo`: the name of the code in the spelling that `google.rpc` asks for.
const fn reason(code: tonic::Code) -> &'static str {
    match code {
        tonic::Code::Ok => "OK",
        tonic::Code::Cancelled => "CANCELLED",
        tonic::Code::Unknown => "UNKNOWN",
        tonic::Code::InvalidArgument => "INVALID_ARGUMENT",
        tonic::Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        tonic::Code::NotFound => "NOT_FOUND",
        tonic::Code::AlreadyExists => "ALREADY_EXISTS",
        tonic::Code::PermissionDenied => "PERMISSION_DENIED",
        tonic::Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        tonic::Code::FailedPrecondition => "FAILED_PRECONDITION",
        tonic::Code::Aborted => "ABORTED",
        tonic::Code::OutOfRange => "OUT_OF_RANGE",
        tonic::Code::Unimplemented => "UNIMPLEMENTED",
        tonic::Code::Internal => "INTERNAL",
        tonic::Code::Unavailable => "UNAVAILABLE",
        tonic::Code::DataLoss => "DATA_LOSS",
        tonic::Code::Unauthenticated => "UNAUTHENTICATED",
    }
}

/// This node drains; the client should go on at another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this node is shutting down; go on at another one")]
pub struct Draining;

impl Classify for Draining {
    fn code(&self) -> Code {
        Code::Unavailable
    }
}

/// This node does not serve yet, or not at present; another one may.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this node does not serve: {0}")]
pub struct NotServing(Box<str>);

impl Classify for NotServing {
    fn code(&self) -> Code {
        Code::Unavailable
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("port 70000 is not allowed")]
    struct BadPort;

    impl Classify for BadPort {
        fn code(&self) -> Code {
            Code::InvalidArgument
        }

        fn field(&self) -> Option<&'static str> {
            Some("key.port")
        }
    }

    #[test]
    fn a_rejected_argument_names_its_field() {
        let status = status(&BadPort);
        assert_eq!(status.code(), tonic::Code::InvalidArgument);
        let details = status.get_error_details();
        assert_eq!(details.bad_request().unwrap().field_violations[0].field, "key.port");
        assert_eq!(details.error_info().unwrap().domain, DOMAIN);
        assert!(details.retry_info().is_none());
    }

    #[test]
    fn a_retryable_refusal_says_when_to_come_back() {
        assert_eq!(status(&Draining).get_error_details().retry_info().unwrap().retry_delay, Some(RETRY_DELAY));
    }

    #[test]
    fn what_tonic_says_by_itself_gets_details_and_ours_is_left_alone() {
        let own = complete(Status::internal("broken protobuf").into_http::<()>());
        let own = Status::from_header_map(own.headers()).unwrap();
        assert_eq!(own.code(), tonic::Code::InvalidArgument);
        assert_eq!(own.get_error_details().error_info().unwrap().reason, "INVALID_ARGUMENT");

        let ours = complete(status(&BadPort).into_http::<()>());
        let ours = Status::from_header_map(ours.headers()).unwrap();
        assert!(ours.get_error_details().bad_request().is_some());

        assert!(complete(http::Response::new(())).headers().is_empty());
    }
}
