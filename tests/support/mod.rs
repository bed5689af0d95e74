//! Runs the real binary for a test, on free ports and in a directory of its own.

#![allow(dead_code, reason = "each test crate uses a part of it")]
#![allow(clippy::print_stdout, reason = "a failed test shows the log")]

use std::{
    fmt::Debug,
    future::Future,
    io::{BufRead, BufReader, Read},
    net::SocketAddr,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use tempfile::TempDir;

/// How long a condition may take before a test gives up. Generous: it is only ever waited for in full by a failure.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A running node. Dropping it kills it.
pub struct Node {
    child: Child,
    log: Arc<Mutex<String>>,
    _dir: TempDir,
    /// Where HTTP is served.
    pub http: SocketAddr,
    /// Where gRPC is served.
    pub grpc: SocketAddr,
}

impl Node {
    /// Starts a node with the built-in settings.
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// Starts a node with settings, each as `section.key=value` with the value as TOML.
    pub fn with(settings: &[&str]) -> Self {
        let dir = TempDir::new().unwrap();
        let env = settings.iter().map(|setting| {
            let (key, value) = setting.split_once('=').unwrap();
            (format!("NOMINA_{}", key.replace('.', "__").to_uppercase()), value.to_owned())
        });
        let mut child = Command::new(env!("CARGO_BIN_EXE_nomina"))
            .args(["--http", "127.0.0.1:0"])
            .env_clear()
            .envs(env)
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        follow(child.stdout.take().unwrap(), &log);
        follow(child.stderr.take().unwrap(), &log);
        let (http, grpc) = loop {
            let seen = log.lock().unwrap().clone();
            if let Some(line) = seen.lines().find(|line| line.contains("node started")) {
                break (address(line, "http="), address(line, "grpc="));
            }
            if let Some(status) = child.try_wait().unwrap() {
                thread::sleep(Duration::from_millis(100));
                panic!("the node ended with {status}: {}", log.lock().unwrap());
            }
            thread::sleep(Duration::from_millis(5));
        };
        Self { child, log, _dir: dir, http, grpc }
    }

    /// What the node has logged.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Sends a signal by its name, as `kill` knows it.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// Waits for the end of the process; its exit code.
    pub async fn ended(&mut self) -> Option<i32> {
        let child = Mutex::new(&mut self.child);
        wait_until("the process has ended", || {
            let status = child.lock().unwrap().try_wait().unwrap();
            async move { status.map(|status| status.code()).ok_or("it runs") }
        })
        .await
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            println!("--- log of the node\n{}", self.log());
        }
    }
}

fn follow(output: impl Read + Send + 'static, log: &Arc<Mutex<String>>) {
    let log = log.clone();
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let mut log = log.lock().unwrap();
            log.push_str(&line);
            log.push('\n');
        }
    });
}

fn address(line: &str, key: &str) -> SocketAddr {
    line.split(key).nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap().parse().unwrap()
}

/// Asks again and again until the answer is `Ok`; its value. Panics with the last `Err` when [`PATIENCE`] is over.
pub async fn wait_until<T, E, F>(what: &str, mut ask: impl FnMut() -> F) -> T
where
    E: Debug,
    F: Future<Output = Result<T, E>>,
{
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        match ask().await {
            Ok(value) => return value,
            Err(state) if tokio::time::Instant::now() > deadline => panic!("waited in vain until {what}: {state:?}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}
