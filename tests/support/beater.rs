//! Publishers that keep their instances alive.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use super::{http::Call, naming::code, server::Server};

/// Sends beats from a thread of its own, all over one connection, until it is stopped. Each must find its instance.
#[derive(Debug)]
pub struct Beater {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Beater {
    /// Sends these beats, one after the other, every `period`.
    pub fn start(server: &Server, period: Duration, beats: Vec<Call>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let mut connection = server.connect();
        let thread = thread::spawn(move || {
            let mut next = Instant::now();
            while !stopped.load(Ordering::Relaxed) {
                for beat in &beats {
                    let answer = connection.call(beat);
                    assert_eq!(code(&answer.json()), 10_200, "{beat:?}");
                }
                next = (next + period).max(Instant::now());
                thread::sleep(next.saturating_duration_since(Instant::now()).min(period));
            }
        });
        Self { stop, thread: Some(thread) }
    }

    /// A light beat.
    pub fn light(server: &Server, service: &str, ip: &str, port: u16, more: &[(&str, &str)]) -> Call {
        let port = port.to_string();
        server.put("/instance/beat").params(&[("serviceName", service), ("ip", ip), ("port", &port)]).params(more)
    }

    /// Sends no more; fails if a beat did not find its instance.
    #[track_caller]
    pub fn stop(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok(), "a beat failed");
    }
}

impl Drop for Beater {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
