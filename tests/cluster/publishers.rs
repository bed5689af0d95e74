//! Publishers over HTTP that change from node to node with every beat, as clients behind a load balancer do.

use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use super::support::{
    http::{Answer, Call, Connection},
    naming::{code, periods},
    wait::SOON,
};

/// How long a node may take to answer; then another one is asked.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long a node that did not answer is left alone.
const AVOIDED: Duration = Duration::from_secs(2);

/// Asks nodes in turn, over connections that it keeps.
#[derive(Debug)]
pub struct Caller {
    nodes: Vec<SocketAddr>,
    open: BTreeMap<SocketAddr, Connection>,
    avoid: BTreeMap<SocketAddr, Instant>,
    turn: u64,
    patience: Duration,
}

impl Caller {
    pub fn new(nodes: &[SocketAddr], seed: u64) -> Self {
        let (open, avoid) = (BTreeMap::new(), BTreeMap::new());
        Self { nodes: nodes.to_vec(), open, avoid, turn: seed | 1, patience: PATIENCE }
    }

    /// One that waits for answers.
    pub fn patient(nodes: &[SocketAddr]) -> Self {
        Self { patience: SOON, ..Self::new(nodes, 1) }
    }

    /// The next of its numbers, one like another.
    pub fn chance(&mut self) -> u64 {
        self.turn ^= self.turn << 13;
        self.turn ^= self.turn >> 7;
        self.turn ^= self.turn << 17;
        self.turn >> 1
    }

    /// Asks one node after the other, the first of them by chance, until one answers with 200. `Err`: what all said.
    pub fn anywhere(&mut self, call: impl Fn(SocketAddr) -> Call) -> Result<Answer, Vec<String>> {
        let count = self.nodes.len();
        let start = usize::try_from(self.chance() % count as u64).unwrap();
        let mut order: Vec<_> = (0..count).map(|step| self.nodes[(start + step) % count]).collect();
        let now = Instant::now();
        order.sort_by_key(|node| self.avoid.get(node).is_some_and(|until| *until > now));
        let mut said = Vec::new();
        for node in order {
            match self.at(node, &call(node)) {
                Ok(answer) if answer.status == 200 => return Ok(answer),
                Ok(answer) => said.push(format!("{node}: {answer:?}")),
                Err(error) => {
                    self.avoid.insert(node, Instant::now() + AVOIDED);
                    said.push(format!("{node}: {error}"));
                }
            }
        }
        Err(said)
    }

    /// Asks one node, anew if a connection that was used before has ended.
    pub fn at(&mut self, node: SocketAddr, call: &Call) -> io::Result<Answer> {
        if let Some(mut open) = self.open.remove(&node) {
            match open.try_call(call) {
                Ok(answer) => {
                    self.open.insert(node, open);
                    return Ok(answer);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(error),
                Err(_) => {}
            }
        }
        let mut open = Connection::try_open(node, self.patience)?;
        let answer = open.try_call(call)?;
        self.open.insert(node, open);
        Ok(answer)
    }
}

/// Programs that keep one instance each in one service, from threads of their own, until they are stopped.
#[derive(Debug)]
pub struct Publishers {
    pub ports: Vec<u64>,
    stop: Arc<AtomicBool>,
    beats: Arc<AtomicU64>,
    failures: Arc<Mutex<Vec<String>>>,
    threads: Vec<JoinHandle<()>>,
}

/// Between two beats of an instance, until it is unhealthy, until it is removed: in milliseconds.
pub const PERIODS: (u64, u64, u64) = (1_000, 5_000, 8_000);

impl Publishers {
    /// Registers `count` instances in `service`, each anywhere, and begins to beat for them.
    #[track_caller]
    pub fn start(nodes: &[SocketAddr], service: &str, count: u16) -> Self {
        Self::with(PERIODS, nodes, service, count)
    }

    /// The same, with other periods.
    #[track_caller]
    pub fn with(lease: (u64, u64, u64), nodes: &[SocketAddr], service: &str, count: u16) -> Self {
        const THREADS: u16 = 4;
        let stop = Arc::new(AtomicBool::new(false));
        let beats = Arc::new(AtomicU64::new(0));
        let failures = Arc::<Mutex<Vec<String>>>::default();
        let mut caller = Caller::new(nodes, 7);
        for port in 1..=count {
            caller.anywhere(|node| registration(node, service, port, lease)).unwrap();
        }
        let thread = |number: u16| {
            let mut caller = Caller::new(nodes, u64::from(number) + 1);
            let (stop, beats, failures) = (stop.clone(), beats.clone(), failures.clone());
            let service = service.to_owned();
            thread::spawn(move || {
                let period = Duration::from_millis(lease.0);
                let mut next = Instant::now();
                let began = Instant::now();
                while !stop.load(Ordering::Relaxed) {
                    for port in (1..=count).filter(|port| port % THREADS == number) {
                        let answer = caller.anywhere(|node| beat(node, &service, port));
                        let at = began.elapsed();
                        match answer {
                            Ok(answer) if code(&answer.json()) == 10_200 => {
                                beats.fetch_add(1, Ordering::Relaxed);
                            }
                            Ok(answer) => {
                                failures.lock().push(format!("{at:?}: {port} is not known: {}", answer.text()));
                                let _ = caller.anywhere(|node| registration(node, &service, port, lease));
                            }
                            Err(said) => failures.lock().push(format!("{at:?}: {port} found nobody: {said:?}")),
                        }
                    }
                    next = (next + period).max(Instant::now());
                    while !stop.load(Ordering::Relaxed) && Instant::now() < next {
                        thread::sleep(Duration::from_millis(20));
                    }
                }
            })
        };
        let threads = (0..THREADS).map(thread).collect();
        let ports = (1..=u64::from(count)).collect();
        Self { ports, stop, beats, failures, threads }
    }

    /// How many beats found their instance.
    pub fn beats(&self) -> u64 {
        self.beats.load(Ordering::Relaxed)
    }

    /// What went wrong so far.
    pub fn failures(&self) -> Vec<String> {
        self.failures.lock().clone()
    }

    /// Ends; every beat must have found its instance, and somebody to answer it.
    #[track_caller]
    pub fn stop(mut self) {
        self.end();
        let failures = self.failures();
        assert!(failures.is_empty(), "{} of {} beats: {failures:#?}", failures.len(), self.beats());
        assert!(self.beats() > 0);
    }

    /// Ends, whatever became of the beats.
    pub fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            assert!(thread.join().is_ok(), "a publisher panicked");
        }
    }
}

impl Drop for Publishers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn of(node: SocketAddr, method: &str, path: &str, service: &str, port: u16) -> Call {
    let call = Call::new(node, method, &format!("/nacos/v1/ns/instance{path}"));
    call.params(&[("serviceName", service), ("ip", "10.0.0.1"), ("port", &port.to_string())])
}

fn registration(node: SocketAddr, service: &str, port: u16, lease: (u64, u64, u64)) -> Call {
    let (interval, timeout, delete) = lease;
    of(node, "POST", "", service, port).param("metadata", &periods(interval, timeout, delete))
}

fn beat(node: SocketAddr, service: &str, port: u16) -> Call {
    of(node, "PUT", "/beat", service, port)
}
