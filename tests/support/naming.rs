//! The calls that most tests need.

use serde_json::Value;

use super::{http::Answer, server::Server};

impl Server {
    /// Registers an instance, with more parameters; it must be `ok`.
    #[track_caller]
    pub fn register(&self, service: &str, ip: &str, port: u16, more: &[(&str, &str)]) {
        self.try_register(service, ip, &port.to_string(), more).ok();
    }

    /// Asks for the registration of an instance.
    #[track_caller]
    pub fn try_register(&self, service: &str, ip: &str, port: &str, more: &[(&str, &str)]) -> Answer {
        let call = self.post("/instance").params(&[("serviceName", service), ("ip", ip), ("port", port)]);
        call.params(more).send()
    }

    /// Removes an instance; it must be `ok`.
    #[track_caller]
    pub fn deregister(&self, service: &str, ip: &str, port: u16, more: &[(&str, &str)]) {
        self.on_instance("DELETE", service, ip, port, more).ok();
    }

    /// Changes an instance; it must be `ok`.
    #[track_caller]
    pub fn update(&self, service: &str, ip: &str, port: u16, more: &[(&str, &str)]) {
        self.on_instance("PUT", service, ip, port, more).ok();
    }

    /// Sends `method` for an instance.
    #[track_caller]
    pub fn on_instance(&self, method: &str, service: &str, ip: &str, port: u16, more: &[(&str, &str)]) -> Answer {
        let port = port.to_string();
        let call = self.ns(method, "/instance").params(&[("serviceName", service), ("ip", ip), ("port", &port)]);
        call.params(more).send()
    }

    /// The list of a service.
    #[track_caller]
    pub fn list(&self, service: &str, more: &[(&str, &str)]) -> Value {
        self.get("/instance/list").param("serviceName", service).params(more).send().json()
    }

    /// The hosts of a list.
    #[track_caller]
    pub fn hosts(&self, service: &str, more: &[(&str, &str)]) -> Vec<Value> {
        self.list(service, more)["hosts"].as_array().expect("hosts").clone()
    }

    /// The ports of a list, ascending.
    #[track_caller]
    pub fn ports(&self, service: &str, more: &[(&str, &str)]) -> Vec<u64> {
        let mut ports: Vec<_> = self.hosts(service, more).iter().map(|host| host["port"].as_u64().unwrap()).collect();
        ports.sort_unstable();
        ports
    }

    /// The clusters of the hosts of a list, ascending.
    #[track_caller]
    pub fn clusters(&self, service: &str, more: &[(&str, &str)]) -> Vec<String> {
        let hosts = self.hosts(service, more);
        let mut clusters: Vec<_> = hosts.iter().map(|host| host["clusterName"].as_str().unwrap().to_owned()).collect();
        clusters.sort_unstable();
        clusters
    }

    /// The only host of a list.
    #[track_caller]
    pub fn host(&self, service: &str, more: &[(&str, &str)]) -> Value {
        let hosts = self.hosts(service, more);
        assert_eq!(hosts.len(), 1, "{hosts:?}");
        hosts.into_iter().next().unwrap()
    }

    /// Sends a beat with these parameters; it must be answered.
    #[track_caller]
    pub fn beat(&self, service: &str, more: &[(&str, &str)]) -> Value {
        self.put("/instance/beat").param("serviceName", service).params(more).send().json()
    }

    /// The code of a light beat.
    #[track_caller]
    pub fn light_beat(&self, service: &str, ip: &str, port: u16) -> u64 {
        code(&self.beat(service, &[("ip", ip), ("port", &port.to_string())]))
    }
}

/// The code of an answer to a beat.
#[track_caller]
pub fn code(answer: &Value) -> u64 {
    answer["code"].as_u64().expect("a code")
}

/// Metadata with these periods in milliseconds.
pub fn periods(interval: u64, timeout: u64, delete: u64) -> String {
    format!(
        "preserved.heart.beat.interval={interval},preserved.heart.beat.timeout={timeout},\
         preserved.ip.delete.timeout={delete}"
    )
}
