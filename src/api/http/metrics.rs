//! Metrics: what Prometheus scrapes, and the counting of requests.

mod cluster;

use std::{fmt, time::Duration};

use axum::{
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{Method, header};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, MetricEncoder, prometheus_text},
    metrics::{MetricType, counter::ConstCounter, counter::Counter, family::Family, gauge::ConstGauge},
    registry::Registry,
};
use tracing::debug;

use super::{gate, refusal::Refusal};
use crate::{
    machine,
    naming::{Naming, Roster},
    push::{Push, SubscriberCounts},
};

/// What a request is counted under. All from closed sets: methods that are known, routes of this program, statuses.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RequestLabels {
    method: &'static str,
    route: String,
    status: u16,
}

/// Counters of answered requests. Cheap to clone; all clones count together.
pub type Requests = Family<RequestLabels, Counter>;

/// Registers the metrics of the registry core, of the cluster, of pushes, of the process and of this front end. All but the
/// requests are read when they are scraped.
pub fn register(registry: &mut Registry, naming: Naming, push: Push, roster: Roster) -> Requests {
    let requests = Requests::default();
    registry.register_collector(Box::new(cluster::Figures { roster, naming: naming.clone() }));
    registry.register_collector(Box::new(Figures { naming, push }));
    registry.register("nomina_http_requests", "HTTP requests that were answered", requests.clone());
    requests
}

/// GET `/metrics` and `/nacos/actuator/prometheus`.
pub async fn scrape(State(state): State<super::State>) -> Result<Response, Refusal> {
    let mut text = String::with_capacity(8 * 1024);
    prometheus_text::encode(&mut text, &state.metrics)
        .map_err(|_| Refusal::new(500, "the metrics could not be written"))?;
    Ok(([(header::CONTENT_TYPE, prometheus_text::CONTENT_TYPE)], text).into_response())
}

/// Lets a request pass the gate, and counts it when it has been answered. Gate and count are one layer because each
/// layer costs every request two allocations.
pub async fn count(State(state): State<super::State>, request: Request, next: Next) -> Response {
    let method = method(request.method());
    let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str).to_owned();
    let response = gate::admit(&state, request, next).await;
    let status = response.status().as_u16();
    debug!(method, route, status, "request answered");
    let labels = RequestLabels { method, route, status };
    state.requests.get_or_create(&labels).inc();
    response
}

/// A client can make methods up; labels must not grow with them.
fn method(method: &Method) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
    KNOWN.iter().find(|known| **known == method.as_str()).copied().unwrap_or("other")
}

/// The figures of the registry core, of pushes and of the process.
#[derive(Debug)]
struct Figures {
    naming: Naming,
    push: Push,
}

impl Collector for Figures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.core(&mut encoder)?;
        self.pushes(&mut encoder)?;
        self.process(&mut encoder)?;
        self.monitor(&mut encoder)
    }
}

impl Figures {
    fn core(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let figures = self.naming.figures();
        for (name, help, value) in [
            ("services", "Services that exist", figures.services),
            ("instances", "Instances that are listed", figures.instances),
            ("leases", "Instances that are kept by beats", figures.leases),
            ("leases_late", "Leases whose instance is unhealthy", figures.late),
            ("queue_length", "Changes that wait to be applied", figures.queued),
            ("queue_capacity", "Changes that may wait to be applied", figures.queue_capacity),
            ("brake_holding", "1 while the brake holds removals back", usize::from(figures.brake_holding)),
            ("watched_services", "Services that somebody watches", figures.watched),
        ] {
            gauge(encoder, &format!("nomina_registry_{name}"), help, value)?;
        }
        for (name, help, value) in [
            ("changes", "Changes of services that were published", figures.published),
            ("lapsed", "Instances that became unhealthy by silence", figures.lapsed),
            ("expired", "Instances that were removed by silence", figures.expired),
            ("freezes", "Times that this process was found to have been frozen", figures.freezes),
            ("brake_engagements", "Times that the brake engaged", figures.brake_engagements),
        ] {
            counter(encoder, &format!("nomina_registry_{name}"), help, value)?;
        }
        Ok(())
    }

    fn pushes(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let figures = self.push.figures();
        for (name, help, value) in [
            ("sent", "Pushes by UDP, each to one subscriber", figures.total),
            ("acknowledged", "Pushes that were acknowledged", figures.succeeded),
            ("failed", "Pushes that could not be sent or were not acknowledged in time", figures.failed),
            ("resent", "Datagrams that were sent again", figures.resent),
            ("superseded", "Pushes whose ack had not come when a newer one was sent", figures.superseded),
            ("too_large", "Lists that did not fit into a datagram", figures.too_large),
            ("malformed_acks", "Datagrams that came in and were no acks", figures.malformed_acks),
            ("unmatched_acks", "Acks that fit no push that waits", figures.unmatched_acks),
        ] {
            counter(encoder, &format!("nomina_push_{name}"), help, value)?;
        }
        gauge(encoder, "nomina_push_waiting", "Pushes that wait for their ack", figures.waiting)?;
        gauge(encoder, "nomina_push_services", "Services with subscribers by UDP", figures.services)?;
        let SubscriberCounts { watch, udp, sdk } = figures.subscribers;
        let help = "Subscribers of services";
        let mut subscribers = encoder.encode_descriptor("nomina_push_subscribers", help, None, MetricType::Gauge)?;
        for (protocol, value) in [("watch", watch), ("udp", udp), ("sdk", sdk)] {
            labelled(&mut subscribers, &[("protocol", protocol)], size(value))?;
        }
        Ok(())
    }

    fn process(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let mut info =
            encoder.encode_descriptor("nomina_build_info", "The running program", None, MetricType::Gauge)?;
        labelled(&mut info, &[("version", env!("CARGO_PKG_VERSION"))], 1)?;
        match machine::resident_bytes() {
            Some(bytes) => {
                let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
                gauge(encoder, "process_resident_memory_bytes", "Memory of this process that is held in RAM", bytes)
            }
            None => Ok(()),
        }
    }

    /// The gauges by which dashboards made for Nacos know a server (1.4 and 2.5 names). Probes of persistent instances
    /// are none yet; a node that stands alone leads itself. Costs are milliseconds, -1 without any push.
    fn monitor(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let (figures, pushes, state) = (self.naming.figures(), self.push.figures(), self.push.state());
        let count = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let cost = |time: Option<Duration>| time.map_or(-1, |time| i64::try_from(time.as_millis()).unwrap_or(i64::MAX));
        let help = "What Nacos shows of its naming module";
        let mut monitor = encoder.encode_descriptor("nacos_monitor", help, None, MetricType::Gauge)?;
        for (name, value) in [
            ("serviceCount", size(figures.services)),
            ("ipCount", size(figures.instances)),
            ("subscriberCount", size(self.push.subscribers().count())),
            ("serviceChangedEventQueueSize", size(figures.queued)),
            ("pushPendingTaskCount", size(pushes.waiting)),
            ("totalPush", count(pushes.total)),
            ("failedPush", count(pushes.failed)),
            ("avgPushCost", cost(state.average_cost)),
            ("maxPushCost", cost(state.most_cost)),
            ("leaderStatus", 1),
            ("tcpHealthCheck", 0),
            ("httpHealthCheck", 0),
            ("mysqlHealthCheck", 0),
            ("mysqlhealthCheck", 0),
        ] {
            labelled(&mut monitor, &[("module", "naming"), ("name", name)], value)?;
        }
        Ok(())
    }
}

fn counter(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    ConstCounter::new(value).encode(encoder.encode_descriptor(name, help, None, MetricType::Counter)?)
}

fn size(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn gauge(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: usize) -> fmt::Result {
    ConstGauge::new(size(value)).encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)
}

fn labelled(encoder: &mut MetricEncoder<'_>, labels: &[(&str, &str)], value: i64) -> fmt::Result {
    ConstGauge::new(value).encode(encoder.encode_family(&labels)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        clock::Clock,
        push,
        readiness::Readiness,
        registry::{Limits, RegistryHandle, Settings},
        shutdown::Shutdown,
    };

    #[tokio::test]
    async fn every_metric_is_written_once_with_its_type() {
        let (shutdown, limits) = (Shutdown::new(), Limits::default());
        let handle = RegistryHandle::start(Settings::default(), limits.clone(), Clock::start(), &shutdown);
        let push = Push::start(handle.clone(), push::Settings::default(), &shutdown).unwrap();
        let mut registry = Registry::default();
        let (_ready, readiness) = tokio::sync::watch::channel(Readiness::Ready);
        let roster = Roster::alone("a:8848", handle.clone(), readiness);
        let requests = register(&mut registry, Naming::new(handle, limits), push, roster);
        requests.get_or_create(&RequestLabels { method: "GET", route: "/a".to_owned(), status: 200 }).inc();
        let mut text = String::new();
        prometheus_text::encode(&mut text, &registry).unwrap();
        for line in [
            "# TYPE nomina_registry_services gauge",
            "nomina_registry_queue_capacity 16384",
            "# TYPE nomina_registry_changes_total counter",
            "nomina_registry_brake_engagements_total 0",
            "nomina_cluster_members{standing=\"up\"} 1",
            "nomina_cluster_takeovers_total 0",
            "nomina_push_sent_total 0",
            "nomina_push_subscribers{protocol=\"udp\"} 0",
            "nacos_monitor{module=\"naming\",name=\"avgPushCost\"} -1",
            "nacos_monitor{module=\"naming\",name=\"ipCount\"} 0",
            "nomina_http_requests_total{method=\"GET\",route=\"/a\",status=\"200\"} 1",
            concat!("nomina_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1"),
        ] {
            assert!(text.lines().any(|own| own == line), "{line} is not in:\n{text}");
        }
        let mut types: Vec<_> = text.lines().filter(|line| line.starts_with("# TYPE")).collect();
        let all = types.len();
        types.sort_unstable();
        types.dedup();
        assert_eq!(types.len(), all);
    }

    #[test]
    fn made_up_methods_are_counted_together() {
        assert_eq!(method(&Method::PATCH), "PATCH");
        assert_eq!(method(&Method::from_bytes(b"BREW").unwrap()), "other");
    }
}
