//! The process under test.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::{
    http::{Call, Connection},
    wait::{SOON, wait_until},
};

/// A running `nomina`. When it is dropped the process is killed; a panic of the server fails the test, and a test that
/// failed shows the server's log.
#[derive(Debug)]
pub struct Server {
    child: Child,
    log: Log,
    reader: Option<JoinHandle<()>>,
    http: SocketAddr,
    grpc: SocketAddr,
    dir: Arc<TempDir>,
}

type Log = Arc<Mutex<String>>;

impl Server {
    /// Starts a server with default settings.
    #[track_caller]
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// Starts a server with settings, each as `key=value`.
    #[track_caller]
    pub fn with(settings: &[&str]) -> Self {
        Self::again(Arc::new(TempDir::new().unwrap()), settings)
    }

    /// Starts a server in the directory of one that ran before.
    #[track_caller]
    pub fn again(dir: Arc<TempDir>, settings: &[&str]) -> Self {
        let server = Self::begin(dir, settings);
        server.await_ready();
        server
    }

    /// Starts a server, and does not wait until it serves.
    #[track_caller]
    pub fn begin(dir: Arc<TempDir>, settings: &[&str]) -> Self {
        let mut child = command(dir.path())
            .args(settings.iter().flat_map(|setting| ["--set", *setting]))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = Log::default();
        let reader = Some(follow(child.stderr.take().unwrap(), log.clone()));
        let mut server = Self { child, log, reader, http: nowhere(), grpc: nowhere(), dir };
        let line = wait_until(
            SOON,
            || {
                assert_eq!(server.child.try_wait().unwrap(), None, "the server ended: {}", server.log());
                server.log().lines().find(|line| line.contains("node started")).map(str::to_owned)
            },
            Option::is_some,
        );
        let line = line.unwrap();
        server.http = address(&line, "http=");
        server.grpc = address(&line, "grpc=");
        server
    }

    fn await_ready(&self) {
        wait_until(
            SOON,
            || {
                let answer = self.call("GET", "/nacos/v1/console/health/readiness").send();
                match answer.status {
                    // The path is not there: ask for something that is.
                    501 => self.get("/instance/list").param("serviceName", "any").send().status,
                    status => status,
                }
            },
            |status| *status == 200,
        );
    }

    /// Where the HTTP API listens.
    pub fn http(&self) -> SocketAddr {
        self.http
    }

    /// Where the gRPC API listens.
    pub fn grpc(&self) -> SocketAddr {
        self.grpc
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The directory that the process runs in; keep it to start another one there.
    pub fn dir(&self) -> Arc<TempDir> {
        self.dir.clone()
    }

    /// What the server has written to standard error.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// How the process ended; `None` while it runs.
    pub fn child_status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Waits for the end of the process, at most `bound`.
    #[track_caller]
    pub fn ended(&mut self, bound: Duration) -> ExitStatus {
        wait_until(bound, || self.child.try_wait().unwrap(), Option::is_some).unwrap()
    }

    /// Stops the process from running for `time`.
    pub fn freeze(&self, time: Duration) {
        self.signal(Signal::STOP);
        thread::sleep(time);
        self.signal(Signal::CONT);
    }

    /// Resident memory in KiB.
    pub fn resident_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// How many connections to the HTTP port the process holds.
    pub fn open_sockets(&self) -> usize {
        let local = format!("0100007F:{:04X}", self.http.port());
        let table = fs::read_to_string(format!("/proc/{}/net/tcp", self.pid())).unwrap();
        let established = |line: &str| {
            let mut words = line.split_whitespace();
            words.nth(1) == Some(&local) && words.nth(1) == Some("01")
        };
        table.lines().filter(|line| established(line)).count()
    }

    /// A new connection to the HTTP port.
    pub fn connect(&self) -> Connection {
        Connection::open(self.http)
    }

    /// A request to any path.
    pub fn call(&self, method: &str, path: &str) -> Call {
        Call::new(self.http, method, path)
    }

    /// A GET below `/nacos/v1/ns`.
    pub fn get(&self, path: &str) -> Call {
        self.ns("GET", path)
    }

    /// A POST below `/nacos/v1/ns`.
    pub fn post(&self, path: &str) -> Call {
        self.ns("POST", path)
    }

    /// A PUT below `/nacos/v1/ns`.
    pub fn put(&self, path: &str) -> Call {
        self.ns("PUT", path)
    }

    /// A PATCH below `/nacos/v1/ns`.
    pub fn patch(&self, path: &str) -> Call {
        self.ns("PATCH", path)
    }

    /// A DELETE below `/nacos/v1/ns`.
    pub fn delete(&self, path: &str) -> Call {
        self.ns("DELETE", path)
    }

    /// Any method below `/nacos/v1/ns`.
    pub fn ns(&self, method: &str, path: &str) -> Call {
        self.call(method, &format!("/nacos/v1/ns{path}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        let log = self.log();
        if thread::panicking() {
            eprintln!("log of the server {}:\n{log}", self.http);
        } else {
            assert!(!log.contains("panicked"), "the server panicked:\n{log}");
        }
    }
}

/// The binary, to be run in `dir` on free ports with nothing of this process's environment.
pub fn command(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nomina"));
    command
        .args(["--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"])
        .env_clear()
        .env("RUST_BACKTRACE", "1")
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

fn follow(stderr: impl Read + Send + 'static, log: Log) -> JoinHandle<()> {
    thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            let mut log = log.lock().unwrap();
            log.push_str(&line);
            log.push('\n');
        }
    })
}

fn address(line: &str, field: &str) -> SocketAddr {
    let value = line.split_whitespace().find_map(|word| word.strip_prefix(field));
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {field} in {line:?}"))
}

fn nowhere() -> SocketAddr {
    SocketAddr::from(([0, 0, 0, 0], 0))
}
