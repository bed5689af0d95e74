//! `NamingFuzzyWatchRequest`: to be told which services there are whose names fit a pattern.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    Inner,
    unary::{gone, read, refuse},
};
use crate::{
    api::grpc::connection::Connection,
    push::sdk::Refusal,
    registry::{ServiceKey, key::excerpt},
    wire::sdk::{Extra, Fault, FuzzyWatchRequest, Kind, Pattern, Reply, error_codes as codes},
};

const KIND: Kind = Kind::FuzzyWatch;

impl Inner {
    /// See the module.
    pub(super) fn watch_names(&self, connection: &Arc<Connection>, body: &[u8]) -> Result<Reply, Reply> {
        let FuzzyWatchRequest { group_key_pattern: text, received_group_keys, watch_type, initializing } = read(body)?;
        let typed = |code, message| Reply::failed(KIND, Fault { code, message }, Extra::None);
        match watch_type.as_str() {
            "CANCEL_WATCH" => {
                connection.line().cancel_names(&text);
                return Ok(Reply::ok(KIND, Extra::None));
            }
            "WATCH" => {}
            other => return Err(typed(codes::INVALID, format!("Unsupported watch type {}", excerpt(other)))),
        }
        let limits = self.naming.limits();
        let pattern = Pattern::parse(limits, &text).map_err(|error| refuse(KIND, &error, Extra::None))?;
        let received: BTreeSet<_> = received_group_keys.iter().filter_map(|key| self.service_of(key)).collect();
        match connection.line().watch_names(&text, pattern, &received, initializing.unwrap_or(false)) {
            Ok(false) => Ok(Reply::ok(KIND, Extra::None)),
            Ok(true) => Err(typed(codes::TOO_MANY_MATCHES, "fuzzy watch pattern matched count over limit".to_owned())),
            Err(refusal @ Refusal::TooManyPatterns { .. }) => Err(typed(codes::TOO_MANY_PATTERNS, refusal.to_string())),
            Err(Refusal::TooManySubscriptions { .. } | Refusal::Ended) => Err(gone(KIND)),
        }
    }

    /// The service of a key as fuzzy watches spell it; one that cannot be a service here is passed over.
    fn service_of(&self, text: &str) -> Option<ServiceKey> {
        let (namespace, rest) = text.split_once("@@")?;
        let (group, name) = rest.split_once("@@")?;
        self.naming.limits().service_key(namespace, group, name).ok()
    }
}
