//! The process under test, and waiting for what it does.

use std::{
    fmt::Debug,
    future::Future,
    io::{BufRead, BufReader},
    net::SocketAddr,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// Longest time for anything that is bound to happen.
pub const SOON: Duration = Duration::from_secs(20);

/// A running `nomina`; killed when dropped. A test that failed shows its log.
pub struct Server {
    child: Child,
    log: Arc<Mutex<String>>,
    pub http: SocketAddr,
    pub grpc: SocketAddr,
    _dir: TempDir,
}

impl Server {
    pub async fn start() -> Self {
        Self::with(&[]).await
    }

    /// Starts a server with settings, each as `key=value`.
    pub async fn with(settings: &[&str]) -> Self {
        let dir = TempDir::new().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_nomina"))
            .args(["--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"])
            .args(settings.iter().flat_map(|setting| ["--set", *setting]))
            .env_clear()
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let (stderr, into) = (child.stderr.take().unwrap(), log.clone());
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let mut log = into.lock().unwrap();
                log.push_str(&line);
                log.push('\n');
            }
        });
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        let mut server = Self { child, log, http: nowhere, grpc: nowhere, _dir: dir };
        let log = wait_until(async || server.log(), |log| log.contains("node started")).await;
        let line = log.lines().find(|line| line.contains("node started")).unwrap().to_owned();
        (server.http, server.grpc) = (address(&line, "http="), address(&line, "grpc="));
        wait_until(
            async || server.call("GET", "/nacos/v1/ns/instance/list?serviceName=any").await.0,
            |status| *status == 200,
        )
        .await;
        server
    }

    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    pub async fn ended(&mut self) {
        let started = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(started.elapsed() < SOON, "the server did not end");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// One HTTP call: status and body.
    pub async fn call(&self, method: &str, target: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.http).await.unwrap();
        let head = format!("{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default();
        (status, body)
    }

    /// The ports of the instances of a service, by the v1 HTTP list.
    pub async fn ports(&self, service: &str) -> Vec<u16> {
        let (status, body) = self.call("GET", &format!("/nacos/v1/ns/instance/list?serviceName={service}")).await;
        assert_eq!(status, 200, "{body}");
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        let port = |host: &serde_json::Value| u16::try_from(host["port"].as_u64().unwrap()).unwrap();
        body["hosts"].as_array().unwrap().iter().map(port).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let log = self.log();
        if std::thread::panicking() {
            eprintln!("log of the server:\n{log}");
        } else {
            assert!(!log.contains("panicked"), "{log}");
        }
    }
}

fn address(line: &str, field: &str) -> SocketAddr {
    line.split_whitespace().find_map(|word| word.strip_prefix(field)).unwrap().parse().unwrap()
}

/// Looks again and again until what is seen is as wanted; fails with what was seen last.
pub async fn wait_until<T, F>(mut look: impl FnMut() -> F, wanted: impl Fn(&T) -> bool) -> T
where
    T: Debug,
    F: Future<Output = T>,
{
    let started = Instant::now();
    loop {
        let seen = look().await;
        if wanted(&seen) {
            return seen;
        }
        assert!(started.elapsed() < SOON, "in vain; seen last: {seen:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
