//! The protocol of the Nacos SDKs (2.x, 3.x): JSON bodies in a gRPC envelope.
//!
//! Reading is lenient: unknown fields are passed over, a missing or `null` field has its default, numbers may be written
//! as `1` or `1.0`. Writing is strict: never `null`, and every key that any SDK insists on.

mod envelope;
mod kind;
mod lenient;
mod pattern;
mod push;
mod reply;
mod request;
mod service_info;

pub use self::{
    envelope::{Message, UNARY_PREFIX},
    kind::{Kind, is_ack, is_between_servers},
    pattern::{Pattern, PatternError, service_key_text},
    push::{
        Change, Sync, SyncType, change_notice, client_detection, connect_reset, notify_subscriber, setup_ack, sync,
    },
    reply::{Extra, Fault, Reply, error_code, error_codes},
    request::{
        Ack, BatchInstanceRequest, ConnectionSetupRequest, FuzzyWatchRequest, Head, InstanceBody, InstanceRequest,
        ServiceListRequest, ServiceQueryRequest, SubscribeServiceRequest, Unreadable, decode,
    },
    service_info::{ServiceInfo, fragment, has_no_hosts},
};

/// The code generated from `proto/nacos`.
#[allow(clippy::all, clippy::pedantic, missing_docs, non_camel_case_types, reason = "generated code")]
pub mod pb {
    tonic::include_proto!("_");
}

/// Decodes a message as it comes off the wire, envelope and body; for tests with arbitrary input.
pub fn probe_payload(bytes: &[u8]) {
    let Ok(payload) = <pb::Payload as prost::Message>::decode(bytes) else { return };
    let name = payload.metadata.map(|metadata| metadata.r#type).unwrap_or_default();
    let body = payload.body.map(|body| body.value).unwrap_or_default();
    probe(&name, &body);
}

/// Decodes a body of the type that `name` names, as a server does; for tests with arbitrary input. Whatever comes, it
/// answers or refuses, and never panics.
pub fn probe(name: &str, body: &[u8]) {
    let _ = decode::<Head>(body);
    let _ = decode::<Ack>(body);
    let _ = decode::<ConnectionSetupRequest>(body);
    match Kind::named(name) {
        Some(Kind::Instance | Kind::PersistentInstance) => drop(decode::<InstanceRequest>(body)),
        Some(Kind::BatchInstance) => drop(decode::<BatchInstanceRequest>(body)),
        Some(Kind::ServiceQuery) => drop(decode::<ServiceQueryRequest>(body)),
        Some(Kind::SubscribeService) => drop(decode::<SubscribeServiceRequest>(body)),
        Some(Kind::ServiceList) => drop(decode::<ServiceListRequest>(body)),
        Some(Kind::FuzzyWatch) => {
            if let Ok(request) = decode::<FuzzyWatchRequest>(body) {
                let _ = Pattern::parse(&crate::registry::Limits::default(), &request.group_key_pattern);
            }
        }
        Some(
            Kind::ServerCheck
            | Kind::HealthCheck
            | Kind::ConfigQuery
            | Kind::ConfigBatchListen
            | Kind::ConfigPublish
            | Kind::ConfigRemove,
        )
        | None => {}
    }
}

#[cfg(test)]
mod tests;
