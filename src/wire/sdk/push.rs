//! Requests of the server to a client. Each has `headers`, `module` and, where an answer is expected, a `requestId` that
//! is text: SDKs break without them.

use std::fmt::Write;

use super::{envelope::Message, service_info::ServiceInfo};
use crate::wire::json::push_string;

/// Beginning of a request of `module` that is to be acknowledged under `id`.
fn begin(id: u64, module: &str) -> String {
    format!("{{\"headers\":{{}},\"requestId\":\"{id}\",\"module\":\"{module}\"")
}

/// The set-up is done; what this server is able to do.
#[must_use]
pub fn setup_ack() -> Message {
    let json = "{\"headers\":{},\"module\":\"internal\",\"abilityTable\":{\"supportPersistentInstanceByGrpc\":false,\
                \"fuzzyWatch\":true,\"lock\":false,\"mcp\":false,\"agent\":false}}";
    Message::new("SetupAckRequest", json)
}

/// Are you there?
#[must_use]
pub fn client_detection(id: u64) -> Message {
    Message::new("ClientDetectionRequest", &(begin(id, "internal") + "}"))
}

/// Go to another server. No address is named, so that clients take the next one of their own list.
#[must_use]
pub fn connect_reset(id: u64, connection: &str) -> Message {
    let mut json = begin(id, "internal");
    json.push_str(",\"serverIp\":\"\",\"serverPort\":\"\",\"connectionId\":");
    push_string(&mut json, connection);
    json.push('}');
    Message::new("ConnectResetRequest", &json)
}

/// The present list of a service.
#[must_use]
pub fn notify_subscriber(id: u64, info: ServiceInfo) -> Message {
    let mut json = begin(id, "naming");
    json.push_str(",\"serviceInfo\":");
    let shared = info.before(&mut json);
    Message::sharing("NotifySubscriberRequest", &json, shared)
}

/// What became of a service that a pattern fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It came into being.
    Added,
    /// It is gone.
    Deleted,
}

impl Change {
    const fn name(self) -> &'static str {
        match self {
            Self::Added => "ADD_SERVICE",
            Self::Deleted => "DELETE_SERVICE",
        }
    }
}

/// What a message of a synchronisation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncType {
    /// Part of the first list.
    Init,
    /// The first list is complete.
    FinishInit,
    /// Differences to what the client knows.
    Diff,
}

/// One message of a synchronisation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sync {
    /// Which part.
    pub sync_type: SyncType,
    /// The pattern, to the letter.
    pub pattern: String,
    /// Services, in the spelling of [`super::service_key_text`], and what became of them.
    pub contexts: Vec<(String, Change)>,
    /// How many messages there are.
    pub total: usize,
    /// Which of them this is, from 1 on.
    pub current: usize,
}

/// Part of the synchronisation of a pattern.
#[must_use]
pub fn sync(id: u64, sync: &Sync) -> Message {
    let mut json = begin(id, "naming");
    json.push_str(",\"syncType\":\"");
    json.push_str(match sync.sync_type {
        SyncType::Init => "FUZZY_WATCH_INIT_NOTIFY",
        SyncType::FinishInit => "FINISH_FUZZY_WATCH_INIT_NOTIFY",
        SyncType::Diff => "FUZZY_WATCH_DIFF_SYNC_NOTIFY",
    });
    json.push_str("\",\"groupKeyPattern\":");
    push_string(&mut json, &sync.pattern);
    json.push_str(",\"contexts\":[");
    for (position, (service, change)) in sync.contexts.iter().enumerate() {
        if position > 0 {
            json.push(',');
        }
        json.push_str("{\"serviceKey\":");
        push_string(&mut json, service);
        // Writing to a String cannot fail.
        let _ = write!(json, ",\"changedType\":\"{}\"}}", change.name());
    }
    let _ = write!(json, "],\"totalBatch\":{},\"currentBatch\":{}}}", sync.total, sync.current);
    Message::new("NamingFuzzyWatchSyncRequest", &json)
}

/// A service that a pattern fits came or went.
#[must_use]
pub fn change_notice(id: u64, service: &str, change: Change) -> Message {
    let mut json = begin(id, "naming");
    json.push_str(",\"syncType\":\"FUZZY_WATCH_RESOURCE_CHANGED\",\"serviceKey\":");
    push_string(&mut json, service);
    json.push_str(",\"changedType\":\"");
    json.push_str(change.name());
    json.push_str("\"}");
    Message::new("NamingFuzzyWatchChangeNotifyRequest", &json)
}
