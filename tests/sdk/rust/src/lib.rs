//! What the tests and the agent share.

use std::sync::{Arc, Mutex};

use nacos_sdk::api::{
    naming::{NamingChangeEvent, NamingEventListener, NamingService, NamingServiceBuilder, ServiceInstance},
    props::ClientProps,
};

pub const IP: &str = "10.1.2.3";

/// Settings of a client that takes an empty list for true, which it does not by default.
pub fn props(server: &str, namespace: &str) -> ClientProps {
    ClientProps::new()
        .server_addr(server)
        .namespace(namespace)
        .load_cache_at_start(false)
        .naming_push_empty_protection(false)
        .cache_dir(std::env::temp_dir().join(format!("nomina-sdk-rust-{}", std::process::id())))
}

pub async fn connect(props: ClientProps) -> nacos_sdk::api::error::Result<NamingService> {
    NamingServiceBuilder::new(props).build().await
}

pub fn instance(port: i32, cluster: &str) -> ServiceInstance {
    ServiceInstance { ip: IP.to_owned(), port, cluster_name: Some(cluster.to_owned()), ..ServiceInstance::default() }
}

pub fn ports(instances: &[ServiceInstance]) -> Vec<i32> {
    let mut ports: Vec<i32> = instances.iter().map(|instance| instance.port).collect();
    ports.sort_unstable();
    ports
}

/// What a listener is told, one list of instances for each event.
#[derive(Default)]
pub struct Told {
    events: Mutex<Vec<Vec<ServiceInstance>>>,
    also: Option<fn(&[ServiceInstance])>,
}

impl Told {
    /// One that is called for each event too.
    pub fn also(call: fn(&[ServiceInstance])) -> Self {
        Self { also: Some(call), ..Self::default() }
    }

    /// All that it was told.
    ///
    /// # Panics
    ///
    /// If a listener has panicked.
    pub fn events(&self) -> Vec<Vec<ServiceInstance>> {
        self.events.lock().unwrap().clone()
    }
}

impl NamingEventListener for Told {
    fn event(&self, event: Arc<NamingChangeEvent>) {
        let instances = event.instances.clone().unwrap_or_default();
        if let Some(also) = self.also {
            also(&instances);
        }
        self.events.lock().unwrap().push(instances);
    }
}
