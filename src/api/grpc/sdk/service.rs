//! What SDKs ask of services: their instances, once or for good, and their names.

use std::sync::Arc;

use super::{
    Inner,
    unary::{gone, read, refuse, refuse_naming},
};
use crate::{
    api::grpc::connection::Connection,
    naming::{Page, ServiceFilter},
    push::sdk::Refusal,
    registry::{ServiceKey, Snapshot, select::Query},
    wire::sdk::{
        Extra, Kind, Reply, ServiceInfo, ServiceListRequest, ServiceQueryRequest, SubscribeServiceRequest, fragment,
        pb::Metadata,
    },
};

/// The application that the headers name.
fn app(metadata: &Metadata) -> Option<&str> {
    let header = metadata.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("app"));
    header.map(|(_, app)| app.as_str()).filter(|app| !app.is_empty())
}

impl Inner {
    /// `ServiceQueryRequest`.
    pub(super) fn query(&self, connection: &Arc<Connection>, body: &[u8]) -> Result<Reply, Reply> {
        let kind = Kind::ServiceQuery;
        let request: ServiceQueryRequest = read(body)?;
        let healthy_only = request.healthy_only == Some(true) || request.health_only == Some(true);
        let nothing = || self.nothing(&request.group_name, &request.service_name, &request.cluster);
        let service = self
            .naming
            .limits()
            .service_key(&request.namespace, &request.group_name, &request.service_name)
            .map_err(|error| refuse(kind, &error, nothing()))?;
        let clusters =
            self.naming.limits().clusters(&request.cluster).map_err(|error| refuse(kind, &error, nothing()))?;
        let query = Query { clusters, healthy_only, ..Query::default() };
        let info = connection.line().info(&service, &request.cluster, &query);
        Ok(Reply::ok(kind, Extra::Service(Some(Box::new(info)))))
    }

    /// `SubscribeServiceRequest`.
    pub(super) fn subscribe(
        &self,
        connection: &Arc<Connection>,
        metadata: &Metadata,
        body: &[u8],
    ) -> Result<Reply, Reply> {
        let kind = Kind::SubscribeService;
        let SubscribeServiceRequest { namespace, service_name, group_name, subscribe, clusters } = read(body)?;
        let nothing = || self.nothing(&group_name, &service_name, &clusters);
        let service = self
            .naming
            .limits()
            .service_key(&namespace, &group_name, &service_name)
            .map_err(|error| refuse(kind, &error, nothing()))?;
        let wanted = self.naming.limits().clusters(&clusters).map_err(|error| refuse(kind, &error, nothing()))?;
        let query = Query { clusters: wanted, ..Query::default() };
        let line = connection.line();
        let info = if subscribe.unwrap_or(false) {
            line.subscribe(&service, &clusters, query, app(metadata)).map_err(|refusal| match refusal {
                Refusal::Ended => gone(kind),
                Refusal::TooManySubscriptions { .. } | Refusal::TooManyPatterns { .. } => {
                    refuse(kind, &refusal, nothing())
                }
            })?
        } else {
            line.unsubscribe(&service, &clusters);
            line.info(&service, &clusters, &query)
        };
        Ok(Reply::ok(kind, Extra::Service(Some(Box::new(info)))))
    }

    /// `ServiceListRequest`.
    pub(super) fn list(&self, body: &[u8]) -> Result<Reply, Reply> {
        let kind = Kind::ServiceList;
        let nothing = || Extra::Services(0, Vec::new());
        let ServiceListRequest { namespace, group_name, page_no, page_size } = read(body)?;
        let limits = self.naming.limits();
        let namespace = limits.namespace(&namespace).map_err(|error| refuse(kind, &error, nothing()))?;
        let group = limits.group(&group_name).map_err(|error| refuse(kind, &error, nothing()))?;
        let page = Page::new(page_no.unwrap_or(1), page_size.unwrap_or(i64::MAX))
            .map_err(|error| refuse_naming(kind, &error, nothing()))?;
        let filter = ServiceFilter { namespace: &namespace, group: Some(&group), test: None };
        let found = self.naming.services(&filter, page);
        let names = found.services.iter().map(|service| service.key().name.to_string()).collect();
        Ok(Reply::ok(kind, Extra::Services(found.total, names)))
    }

    /// The empty list that goes with a refusal: SDKs fail on an answer without one. The names are those that were asked
    /// for, if they are names.
    fn nothing(&self, group: &str, name: &str, clusters: &str) -> Extra {
        let limits = self.naming.limits();
        let named = limits.service_key("", group, name).or_else(|_| limits.service_key("", "", "unknown"));
        Extra::Service(named.ok().map(|service: ServiceKey| {
            Box::new(ServiceInfo {
                clusters: crate::registry::key::excerpt(clusters),
                last_ref_time: self.naming.wall_millis(),
                cache_millis: self.naming.switches().push_cache_millis,
                fragment: fragment(&service, &Snapshot::default(), &Query::default()),
            })
        }))
    }
}
