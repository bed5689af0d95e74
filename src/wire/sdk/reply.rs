//! Answers to unary requests.
//!
//! Two shapes of failure: *typed*, the request's own response with a failure in it, which SDKs show to their caller and
//! which makes Java log in again; and `ErrorResponse`, which makes SDKs try again and look for another server.

use std::fmt::Write;

use super::{envelope::Message, kind::Kind, service_info::ServiceInfo};
use crate::wire::json::push_string;

/// Codes in `errorCode` that SDKs act on.
pub mod error_codes {
    /// This server is starting or draining.
    pub const NOT_READY: u16 = 300;
    /// The transport has no connection that was set up.
    pub const UNREGISTERED: u16 = 301;
    /// There is no such request.
    pub const NO_HANDLER: u16 = 302;
    /// An argument is not allowed.
    pub const INVALID: u16 = 400;
    /// The caller may not do this.
    pub const NO_RIGHT: u16 = 403;
    /// What is named does not exist.
    pub const NOT_FOUND: u16 = 404;
    /// A fault of ours.
    pub const SERVER: u16 = 500;
    /// Not offered.
    pub const UNSUPPORTED: u16 = 501;
    /// The body cannot be read, or the request is not for this port.
    pub const BAD_GATEWAY: u16 = 502;
    /// A limit was reached.
    pub const OVER_THRESHOLD: u16 = 503;
    /// Too many patterns are watched.
    pub const TOO_MANY_PATTERNS: u16 = 50310;
    /// A pattern fits too many services.
    pub const TOO_MANY_MATCHES: u16 = 50311;

    /// All of them, and 0 for success.
    pub const ALL: [u16; 13] = [
        0,
        NOT_READY,
        UNREGISTERED,
        NO_HANDLER,
        INVALID,
        NO_RIGHT,
        NOT_FOUND,
        SERVER,
        UNSUPPORTED,
        BAD_GATEWAY,
        OVER_THRESHOLD,
        TOO_MANY_PATTERNS,
        TOO_MANY_MATCHES,
    ];
}

/// The `errorCode` under which an error of ours leaves the process.
#[must_use]
pub const fn error_code(code: crate::error::Code) -> u16 {
    use crate::error::Code;
    match code {
        Code::InvalidArgument | Code::AlreadyExists | Code::FailedPrecondition => error_codes::INVALID,
        Code::NotFound => error_codes::NOT_FOUND,
        Code::ResourceExhausted => error_codes::OVER_THRESHOLD,
        Code::PermissionDenied => error_codes::NO_RIGHT,
        Code::Unavailable => error_codes::NOT_READY,
        Code::Unimplemented => error_codes::UNSUPPORTED,
        Code::Internal => error_codes::SERVER,
    }
}

/// A failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// One of [`error_codes`].
    pub code: u16,
    /// For people.
    pub message: String,
}

/// What an answer holds beside its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Extra {
    /// Nothing.
    None,
    /// The connection's id, and that abilities are negotiated.
    Check(String),
    /// The operation that was asked for.
    Type(String),
    /// The instances of a service.
    Service(Option<Box<ServiceInfo>>),
    /// Names of services, and how many there are in all.
    Services(usize, Vec<String>),
    /// No configuration has changed.
    NoConfigs,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    kind: Option<Kind>,
    result: u16,
    fault: Option<Fault>,
    message: &'static str,
    extra: Extra,
}

impl Reply {
    /// The request was carried out.
    #[must_use]
    pub fn ok(kind: Kind, extra: Extra) -> Self {
        let message = if kind == Kind::SubscribeService { "success" } else { "" };
        Self { kind: Some(kind), result: 200, fault: None, message, extra }
    }

    /// The request failed: typed.
    #[must_use]
    pub fn failed(kind: Kind, fault: Fault, extra: Extra) -> Self {
        Self { kind: Some(kind), result: 500, fault: Some(fault), message: "", extra }
    }

    /// The request did not get through: an `ErrorResponse` whose result is 500.
    #[must_use]
    pub fn error(fault: Fault) -> Self {
        Self { kind: None, result: 500, fault: Some(fault), message: "", extra: Extra::None }
    }

    /// The request was refused by the state of the registry: an `ErrorResponse` whose result is the code itself.
    #[must_use]
    pub fn refused(fault: Fault) -> Self {
        Self { result: fault.code, ..Self::error(fault) }
    }

    /// The `errorCode`; 0 for success.
    #[must_use]
    pub fn code(&self) -> u16 {
        self.fault.as_ref().map_or(0, |fault| fault.code)
    }

    /// The message, with the client's number of the request if it had one.
    #[must_use]
    pub fn into_message(self, request_id: &str) -> Message {
        let code = self.code();
        let mut json = String::with_capacity(192);
        // Writing to a String cannot fail.
        let _ = write!(
            json,
            "{{\"resultCode\":{},\"errorCode\":{code},\"success\":{}",
            self.result,
            if self.fault.is_none() { "true" } else { "false" }
        );
        if !request_id.is_empty() {
            json.push_str(",\"requestId\":");
            push_string(&mut json, request_id);
        }
        let message = self.fault.as_ref().map_or(self.message, |fault| &fault.message);
        if !message.is_empty() {
            json.push_str(",\"message\":");
            push_string(&mut json, message);
        }
        let kind = self.kind.map_or("ErrorResponse", Kind::response);
        match self.extra {
            Extra::Service(Some(info)) => {
                json.push_str(",\"serviceInfo\":");
                let shared = info.before(&mut json);
                return Message::sharing(kind, &json, shared);
            }
            Extra::None | Extra::Service(None) => {}
            Extra::Check(id) => {
                json.push_str(",\"connectionId\":");
                push_string(&mut json, &id);
                json.push_str(",\"supportAbilityNegotiation\":true");
            }
            Extra::Type(operation) => {
                json.push_str(",\"type\":");
                push_string(&mut json, &operation);
            }
            Extra::Services(count, names) => {
                let _ = write!(json, ",\"count\":{count},\"serviceNames\":[");
                for (position, name) in names.iter().enumerate() {
                    if position > 0 {
                        json.push(',');
                    }
                    push_string(&mut json, name);
                }
                json.push(']');
            }
            Extra::NoConfigs => json.push_str(",\"changedConfigs\":[]"),
        }
        json.push('}');
        Message::new(kind, &json)
    }
}
