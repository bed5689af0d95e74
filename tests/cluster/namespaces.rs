//! Nodes in network namespaces of their own, whose paths to each other can be cut one way or both.
//!
//! The test runs itself again inside of new namespaces, where it is root and everything ends with it. That needs Linux,
//! `unshare`, `nsenter` and `ip`, and a system that lets this user make namespaces; where it is not so, the test says that it
//! was skipped.

use std::{
    fs,
    io::Write,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    process::{Child, Command, Stdio},
};

use super::support::wait::{SOON, wait_until};

/// Tells the test that it runs inside.
const INSIDE: &str = "NOMINA_TEST_INSIDE_NAMESPACES";

/// A place in the link layer where nobody is.
const NOBODY: &str = "02:00:00:00:00:99";

/// Runs `body` inside of new namespaces of networks, mounts and processes. `test` is the whole name of the test that calls
/// this, by which it is run again.
#[track_caller]
pub fn inside(test: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        run(&["ip", "link", "set", "lo", "up"]);
        body();
        return;
    }
    let mut options = vec!["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
    if !rustix::process::geteuid().is_root() {
        options.extend(["--user", "--map-root-user"]);
    }
    let probe = "ip link add probe type bridge && ip link add probe-a type veth peer name probe-b && nsenter --version";
    let output = Command::new("unshare").args(&options).args(["sh", "-c", probe]).output();
    let reason = match output {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Some(format!("unshare: {error}")),
    };
    if let Some(reason) = reason {
        // Past the harness, which shows only what failed.
        let _ =
            writeln!(std::io::stderr(), "\nSKIPPED: {test} needs namespaces, which are not to be had here: {reason}\n");
        return;
    }
    let output = Command::new("unshare")
        .args(&options)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads", "1"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].map(|out| String::from_utf8_lossy(&out).into_owned()).join("\n");
    assert!(output.status.success() && text.contains("1 passed"), "inside: {text}");
    eprintln!("{text}");
}

/// A network of this namespace, which reaches all nodes, and one namespace for each node. Ends with the test.
#[derive(Debug)]
pub struct Network {
    hosts: Vec<Child>,
}

impl Network {
    /// Makes the network, with a bridge in the middle.
    pub fn new(count: usize) -> Self {
        run(&["ip", "link", "add", "middle", "type", "bridge"]);
        run(&["ip", "addr", "add", "10.77.0.254/24", "dev", "middle"]);
        run(&["ip", "link", "set", "middle", "up"]);
        let mut network = Self { hosts: Vec::new() };
        for host in 0..count {
            let child = Command::new("unshare").args(["--net", "sleep", "infinity"]).stdin(Stdio::null()).spawn();
            let child = child.unwrap();
            let (its, own) = (format!("/proc/{}/ns/net", child.id()), "/proc/self/ns/net");
            let namespace = |path: &str| fs::read_link(path).ok();
            wait_until(SOON, || namespace(&its), |its| its.is_some() && *its != namespace(own));
            let (cable, process) = (format!("cable{host}"), child.id().to_string());
            network.hosts.push(child);
            run(&["ip", "link", "add", &cable, "type", "veth", "peer", "name", "eth0", "netns", &process]);
            run(&["ip", "link", "set", &cable, "master", "middle", "up"]);
            let address = format!("{}/24", address(host));
            network.run(host, &["ip", "addr", "add", &address, "dev", "eth0"]);
            network.run(host, &["ip", "link", "set", "eth0", "up"]);
            network.run(host, &["ip", "link", "set", "lo", "up"]);
        }
        network
    }

    /// What runs a command on a host.
    pub fn wrapper(&self, host: usize) -> [String; 2] {
        ["nsenter".to_owned(), format!("--net=/proc/{}/ns/net", self.hosts[host].id())]
    }

    fn run(&self, host: usize, command: &[&str]) {
        let wrapper = self.wrapper(host);
        let words: Vec<_> = wrapper.iter().map(String::as_str).chain(command.iter().copied()).collect();
        run(&words);
    }

    /// Nothing that `from` sends reaches `to` from now on, and nobody is told.
    pub fn drop_way(&self, from: usize, to: usize) {
        let to = address(to).to_string();
        self.run(from, &["ip", "neigh", "replace", &to, "lladdr", NOBODY, "nud", "permanent", "dev", "eth0"]);
    }

    /// Heals what [`Network::drop_way`] did.
    pub fn heal_way(&self, from: usize, to: usize) {
        let to = address(to).to_string();
        self.run(from, &["ip", "neigh", "del", &to, "dev", "eth0"]);
    }

    /// Nothing passes between two hosts.
    pub fn cut(&self, one: usize, other: usize) {
        self.drop_way(one, other);
        self.drop_way(other, one);
    }

    /// Heals what [`Network::cut`] did.
    pub fn heal(&self, one: usize, other: usize) {
        self.heal_way(one, other);
        self.heal_way(other, one);
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for host in &mut self.hosts {
            let _ = host.kill();
            let _ = host.wait();
        }
    }
}

/// The address of a host.
pub fn address(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, u8::try_from(host).unwrap() + 1)
}

/// Where the HTTP API of the node on a host is.
pub fn http(host: usize) -> SocketAddr {
    SocketAddr::from((address(host), 8_848))
}

/// Has the whole namespace of mounts see `hosts` as its `/etc/hosts`; what is written into that file later counts at once.
pub fn mount_hosts(hosts: &Path) {
    run(&["mount", "--bind", &hosts.display().to_string(), "/etc/hosts"]);
}

/// Runs a command, which must succeed.
#[track_caller]
pub fn run(command: &[&str]) {
    let output = Command::new(command[0]).args(&command[1..]).output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
