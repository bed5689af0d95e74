//! Programs that register and remove instances all the time, and know what there should be.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use super::{
    publishers::Caller,
    support::{http::Call, naming::periods},
};

/// Threads that change instances, each those of its own.
#[derive(Debug)]
pub struct Churn {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<(BTreeMap<u64, bool>, usize)>>,
}

impl Churn {
    /// Registers and removes `count` instances of `service`, each time anywhere. Nobody beats for them; they live for
    /// minutes.
    pub fn start(nodes: &[SocketAddr], service: &str, count: u64) -> Self {
        const THREADS: u64 = 3;
        let stop = Arc::new(AtomicBool::new(false));
        let thread = |number: u64| {
            let (stop, service, nodes) = (stop.clone(), service.to_owned(), nodes.to_vec());
            thread::spawn(move || {
                let mut caller = Caller::new(&nodes, number + 3);
                let mut there = BTreeMap::new();
                let mut changes = 0;
                let own: Vec<_> = (1..=count).filter(|port| port % THREADS == number).collect();
                while !stop.load(Ordering::Relaxed) {
                    let port = own[usize::try_from(caller.chance()).unwrap() % own.len()];
                    let listed = there.get(&port) == Some(&true);
                    let method = if listed { "DELETE" } else { "POST" };
                    // Asked until it is answered: what failed may have been done or not.
                    while caller.anywhere(|node| call(node, method, &service, port)).is_err() {
                        thread::sleep(Duration::from_millis(20));
                    }
                    there.insert(port, !listed);
                    changes += 1;
                    thread::sleep(Duration::from_millis(5));
                }
                (there, changes)
            })
        };
        Self { threads: (0..THREADS).map(thread).collect(), stop }
    }

    /// Ends; returns the ports that must be listed, and how many changes there were.
    pub fn stop(self) -> (Vec<u64>, usize) {
        self.stop.store(true, Ordering::Relaxed);
        let (mut ports, mut changes) = (Vec::new(), 0);
        for thread in self.threads {
            let (there, own) = thread.join().unwrap();
            ports.extend(there.into_iter().filter_map(|(port, listed)| listed.then_some(port)));
            changes += own;
        }
        ports.sort_unstable();
        (ports, changes)
    }
}

fn call(node: SocketAddr, method: &str, service: &str, port: u64) -> Call {
    let call = Call::new(node, method, "/nacos/v1/ns/instance");
    let call = call.params(&[("serviceName", service), ("ip", "10.0.0.3"), ("port", &port.to_string())]);
    if method == "POST" { call.param("metadata", &periods(5_000, 300_000, 600_000)) } else { call }
}
