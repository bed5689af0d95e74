//! What Prometheus scrapes of the connections of SDKs. All is read when it is scraped.

use std::fmt;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    registry::Registry,
};

use super::sdk::SdkApi;

/// Registers the metrics of `sdk`.
pub fn register(registry: &mut Registry, sdk: SdkApi) {
    registry.register_collector(Box::new(Figures(sdk)));
}

#[derive(Debug)]
struct Figures(SdkApi);

impl Collector for Figures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let connections = self.0.connections().figures();
        let pushes = self.0.connections().push().figures();
        for (name, help, value) in [
            ("connections", "Connections of SDKs that are set up", connections.open),
            ("topics", "Services, with the clusters asked for, that SDKs subscribe to", pushes.topics),
            ("name_watchers", "Connections that watch the names of services", pushes.name_watchers),
        ] {
            let value = i64::try_from(value).unwrap_or(i64::MAX);
            let name = format!("nomina_sdk_{name}");
            ConstGauge::new(value).encode(encoder.encode_descriptor(&name, help, None, MetricType::Gauge)?)?;
        }
        let longest = "Longest time from a change to its acknowledgement by a client";
        let gauge = encoder.encode_descriptor("nomina_sdk_push_delay_max_ms", longest, None, MetricType::Gauge)?;
        ConstGauge::new(i64::try_from(pushes.delay_max_ms).unwrap_or(i64::MAX)).encode(gauge)?;
        for (name, help, value) in [
            ("connections_opened", "Connections that were set up", connections.opened),
            ("connections_dropped", "Connections that were dropped for silence", connections.dropped),
            ("pushes_sent", "Pushes to SDKs", pushes.sent),
            ("pushes_acknowledged", "Pushes that SDKs acknowledged", pushes.acked),
            ("pushes_merged", "Changes that went out with an older one that still waited", pushes.merged),
            ("pushes_failed", "Pushes that were not acknowledged in time, or refused", pushes.failed),
            ("pushes_repeated", "Pushes that were sent again after that", pushes.repeated),
            ("pushes_oversized", "Pushes larger than their client reads, which were not sent", pushes.oversized),
            ("pushes_held_back", "Pushes without any instance, which were not sent", pushes.held_back),
            ("push_bytes", "Bytes of pushes", pushes.bytes),
            ("push_delay_ms", "Times from a change to its acknowledgement, all together", pushes.delay_sum_ms),
        ] {
            let name = format!("nomina_sdk_{name}");
            ConstCounter::new(value).encode(encoder.encode_descriptor(&name, help, None, MetricType::Counter)?)?;
        }
        let help = "Requests of SDKs by type and errorCode";
        let mut requests = encoder.encode_descriptor("nomina_sdk_requests", help, None, MetricType::Counter)?;
        for figures in self.0.requests() {
            let labels = [("request", figures.request.to_owned()), ("code", figures.code.to_string())];
            ConstCounter::new(figures.count).encode(requests.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
