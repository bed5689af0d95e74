//! Somebody who looks at the lists of all nodes all the time, and notes whatever should not have been seen.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use super::{publishers::Caller, support::http::Call};

/// Looks until it is told to stop. A node that does not answer, or says that it does not serve, is passed over.
#[derive(Debug)]
pub struct Witness {
    stop: Arc<AtomicBool>,
    looks: Arc<AtomicU64>,
    notes: Arc<Mutex<Vec<String>>>,
    threads: Vec<JoinHandle<()>>,
}

impl Witness {
    /// `expected`: ports that must be listed, healthy, in each service, by whoever answers.
    pub fn start(nodes: &[SocketAddr], expected: &[(&str, &[u64])]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let looks = Arc::new(AtomicU64::new(0));
        let notes = Arc::<Mutex<Vec<String>>>::default();
        let expected: BTreeMap<String, BTreeSet<u64>> =
            expected.iter().map(|(service, ports)| ((*service).to_owned(), ports.iter().copied().collect())).collect();
        let thread = |node: &SocketAddr| {
            let (node, stop, looks, notes) = (*node, stop.clone(), looks.clone(), notes.clone());
            let expected = expected.clone();
            thread::spawn(move || {
                let mut caller = Caller::new(&[node], 1);
                let began = Instant::now();
                while !stop.load(Ordering::Relaxed) {
                    for (service, ports) in &expected {
                        let call = Call::new(node, "GET", "/nacos/v1/ns/instance/list").param("serviceName", service);
                        let Ok(answer) = caller.at(node, &call) else { continue };
                        let at = began.elapsed();
                        if answer.status == 503 {
                            continue;
                        }
                        looks.fetch_add(1, Ordering::Relaxed);
                        let list = answer.json();
                        let hosts = list["hosts"].as_array().unwrap();
                        let well = hosts.iter().filter(|host| host["healthy"] == true);
                        let well: BTreeSet<_> = well.map(|host| host["port"].as_u64().unwrap()).collect();
                        let missing: Vec<_> = ports.difference(&well).collect();
                        if !missing.is_empty() {
                            let shown = hosts.iter().filter(|host| host["healthy"] != true).count();
                            let all = hosts.len();
                            let note =
                                format!("{at:?}: {node} lists {all} in {service}, {shown} unhealthy; not {missing:?}");
                            notes.lock().push(note);
                        }
                    }
                    thread::sleep(Duration::from_millis(50));
                }
            })
        };
        let threads = nodes.iter().map(thread).collect();
        Self { stop, looks, notes, threads }
    }

    /// What was noted so far.
    pub fn notes(&self) -> Vec<String> {
        self.notes.lock().clone()
    }

    /// Ends; nothing must have been noted.
    #[track_caller]
    pub fn stop(mut self) {
        self.end();
        let notes = self.notes();
        assert!(notes.is_empty(), "{} of {} looks: {notes:#?}", notes.len(), self.looks.load(Ordering::Relaxed));
        assert!(self.looks.load(Ordering::Relaxed) > 0);
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            assert!(thread.join().is_ok(), "a witness panicked");
        }
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
