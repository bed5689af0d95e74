//! The closed table of the messages that a client may send as unary requests.

/// A type of request that is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is the request of its name")]
pub enum Kind {
    ServerCheck,
    HealthCheck,
    Instance,
    PersistentInstance,
    BatchInstance,
    ServiceQuery,
    SubscribeService,
    ServiceList,
    FuzzyWatch,
    ConfigQuery,
    ConfigBatchListen,
    ConfigPublish,
    ConfigRemove,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::ServerCheck,
        Self::HealthCheck,
        Self::Instance,
        Self::PersistentInstance,
        Self::BatchInstance,
        Self::ServiceQuery,
        Self::SubscribeService,
        Self::ServiceList,
        Self::FuzzyWatch,
        Self::ConfigQuery,
        Self::ConfigBatchListen,
        Self::ConfigPublish,
        Self::ConfigRemove,
    ];

    /// The request of this type name, which is case-sensitive; `None` if there is no handler for it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.request() == name)
    }

    /// The type name of the request.
    #[must_use]
    pub const fn request(self) -> &'static str {
        match self {
            Self::ServerCheck => "ServerCheckRequest",
            Self::HealthCheck => "HealthCheckRequest",
            Self::Instance => "InstanceRequest",
            Self::PersistentInstance => "PersistentInstanceRequest",
            Self::BatchInstance => "BatchInstanceRequest",
            Self::ServiceQuery => "ServiceQueryRequest",
            Self::SubscribeService => "SubscribeServiceRequest",
            Self::ServiceList => "ServiceListRequest",
            Self::FuzzyWatch => "NamingFuzzyWatchRequest",
            Self::ConfigQuery => "ConfigQueryRequest",
            Self::ConfigBatchListen => "ConfigBatchListenRequest",
            Self::ConfigPublish => "ConfigPublishRequest",
            Self::ConfigRemove => "ConfigRemoveRequest",
        }
    }

    /// The type name of its answer: SDKs insist on the exact pair.
    #[must_use]
    pub const fn response(self) -> &'static str {
        match self {
            Self::ServerCheck => "ServerCheckResponse",
            Self::HealthCheck => "HealthCheckResponse",
            Self::Instance | Self::PersistentInstance => "InstanceResponse",
            Self::BatchInstance => "BatchInstanceResponse",
            Self::ServiceQuery => "QueryServiceResponse",
            Self::SubscribeService => "SubscribeServiceResponse",
            Self::ServiceList => "ServiceListResponse",
            Self::FuzzyWatch => "NamingFuzzyWatchResponse",
            Self::ConfigQuery => "ConfigQueryResponse",
            Self::ConfigBatchListen => "ConfigChangeBatchListenResponse",
            Self::ConfigPublish => "ConfigPublishResponse",
            Self::ConfigRemove => "ConfigRemoveResponse",
        }
    }

    /// Its place in [`Kind::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Whether the request is one that servers send to each other, on a port of their own.
#[must_use]
pub fn is_between_servers(name: &str) -> bool {
    matches!(
        name,
        "DistroDataRequest"
            | "MemberReportRequest"
            | "ServerLoaderInfoRequest"
            | "ServerReloadRequest"
            | "ConfigChangeClusterSyncRequest"
    )
}

/// Whether a message of this type on the stream acknowledges a request of the server.
#[must_use]
pub fn is_ack(name: &str) -> bool {
    name.ends_with("Response")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_names_are_exact() {
        for (at, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind.index(), at);
            assert_eq!(Kind::named(kind.request()), Some(kind));
        }
        for name in ["instanceRequest", "InstanceRequest ", "", "ConnectionSetupRequest", "InstanceResponse"] {
            assert_eq!(Kind::named(name), None, "{name}");
        }
    }
}
