//! Why a v1 request has no effect: a status and one line of plain text (Nacos 2.5).

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};

use crate::{
    error::Classify,
    naming,
    registry::{self, heartbeat::PeriodError, key::NameError, service::ThresholdError},
    wire::http_v1::{FormError, MetadataError, ParamError, SelectorError, SwitchError},
};

/// An answer that is not a success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub text: String,
}

impl Refusal {
    /// Answers `status` with `text`.
    pub fn new(status: u16, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }

    /// 400: the request can never succeed.
    pub fn bad(text: impl Into<String>) -> Self {
        Self::new(400, text)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, [(header::CONTENT_TYPE, "text/plain;charset=UTF-8")], self.text).into_response();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

fn classified(error: &impl Classify) -> Refusal {
    Refusal::new(error.code().http_status(), error.to_string())
}

impl From<ParamError> for Refusal {
    fn from(error: ParamError) -> Self {
        classified(&error)
    }
}

impl From<MetadataError> for Refusal {
    fn from(error: MetadataError) -> Self {
        classified(&error)
    }
}

impl From<SelectorError> for Refusal {
    fn from(error: SelectorError) -> Self {
        classified(&error)
    }
}

impl From<SwitchError> for Refusal {
    fn from(error: SwitchError) -> Self {
        classified(&error)
    }
}

impl From<ThresholdError> for Refusal {
    fn from(error: ThresholdError) -> Self {
        Self::bad(format!("Param 'protectThreshold' is illegal, {error}"))
    }
}

impl From<FormError> for Refusal {
    fn from(error: FormError) -> Self {
        Self::bad(error.to_string())
    }
}

impl From<registry::metadata::TooLarge> for Refusal {
    fn from(error: registry::metadata::TooLarge) -> Self {
        naming::Error::from(error).into()
    }
}

impl From<registry::publication::WeightError> for Refusal {
    fn from(error: registry::publication::WeightError) -> Self {
        naming::Error::from(error).into()
    }
}

impl From<NameError> for Refusal {
    /// The texts begin as those of the Nacos 2.5 parameter check, with what was seen behind them.
    fn from(error: NameError) -> Self {
        let param = match error.field() {
            Some("namespace") => "namespaceId/tenant",
            Some("service") => "serviceName",
            Some(other) => other,
            None => "request",
        };
        Self::bad(match &error {
            NameError::Empty { .. } => format!("Param '{param}' is required."),
            NameError::TooLong { length, limit, .. } => format!(
                "Param '{param}' is illegal, the param length should not exceed {limit}. (it has {length} bytes)"
            ),
            NameError::Character { .. } | NameError::NotAnAddress { .. } => {
                format!("Param '{param}' is illegal, illegal characters should not appear in the param. ({error})")
            }
            NameError::TooManyClusters { .. } => format!("Param 'clusters' is illegal, {error}"),
            NameError::Port { value } => {
                format!("Param 'port' is illegal, the value should be between 0 and 65535. (it is '{value}')")
            }
        })
    }
}

impl From<naming::Error> for Refusal {
    fn from(error: naming::Error) -> Self {
        match error {
            naming::Error::Name(error) => error.into(),
            naming::Error::Weight(_) => Self::bad(format!("instance format invalid: {error}")),
            naming::Error::Metadata(error) => Self::bad(format!(
                "Param 'Metadata' is illegal, the param length should not exceed {}. ({error})",
                error.limit
            )),
            naming::Error::Period(PeriodError::Order { .. }) => Self::bad(format!(
                "Instance 'heart beat interval' must less than 'heart beat timeout' and 'ip delete timeout'. ({error})"
            )),
            naming::Error::Period(PeriodError::Value { .. })
            | naming::Error::Threshold(_)
            | naming::Error::Selector(_)
            | naming::Error::Argument { .. }
            | naming::Error::PersistentUnavailable
            | naming::Error::ClusterWide { .. }
            | naming::Error::Registry(_) => classified(&error),
        }
    }
}
