//! `[cluster]`: this node's name, where the list of members comes from, what all nodes share, and how long they wait
//! for each other.

use std::{path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};

use super::{
    member::{MemberList, MemberName},
    source::Source,
};
use crate::setting::{MASK, Problem, Secret, Section, Setting, duration};

/// Bytes that a shared secret must have: as many as the digest that it keys.
pub const LEAST_SECRET_BYTES: usize = 32;

const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

/// Members, their secret, and the bounds within which they find out about each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// This node's name, `host:port`, as the list of members has it. Follows `server.http`.
    pub advertise: String,
    /// Names of all nodes, this one included; empty means that the node runs alone, or that the list comes from
    /// elsewhere. A change needs a restart of every node.
    pub members: Vec<String>,
    /// A file with the names of all nodes in the format of `cluster.conf`, read again when it changes. Empty: none.
    pub members_file: PathBuf,
    /// A name in DNS whose records are the nodes: `host:port` for A and AAAA records, each an `ip:port`, or the name of
    /// SRV records (`_http._tcp.nomina.default.svc.cluster.local`), whose targets and ports are names that outlive an
    /// address. Nodes that are not ready must have records too (Kubernetes: `publishNotReadyAddresses`). Empty: none.
    pub members_dns: String,
    /// Time between two looks at the file or the records. 100 ms to 1 h. Raised, a new member is found later; lowered,
    /// the name server is asked more often.
    #[serde(with = "duration")]
    pub members_poll: Duration,
    /// What all nodes share to know each other: at least 32 bytes where there are other nodes.
    pub secret: Secret,
    /// Time between two signs of life on each link. 10 ms to 1 min, below `suspect_after`. Raised, fewer messages;
    /// lowered, a lost one does not make a member suspect.
    #[serde(with = "duration")]
    pub ping_interval: Duration,
    /// Silence after which a member is suspect: shown, and nothing else. 20 ms to 10 min, below `down_after`.
    #[serde(with = "duration")]
    pub suspect_after: Duration,
    /// Silence after which a member is down and others take its beat sources over. 100 ms to 1 h. Raised, beats that
    /// were meant for a dead member wait longer; lowered, a short pause of a network or a node moves its beat sources.
    #[serde(with = "duration")]
    pub down_after: Duration,
    /// How long the instances of a dead member stay listed, for their publishers to find another node. 1 s to 1 h.
    /// Raised, dead instances are listed longer; lowered, clients that are slow to reconnect lose their instances for a
    /// while.
    #[serde(with = "duration")]
    pub grace: Duration,
    /// The same for a node that hears less than half of the list: longest time for which it lists what it cannot know.
    /// `grace` to 1 day. Raised, a node that is cut off lists older news; lowered, it lists less during a long cut.
    #[serde(with = "duration")]
    pub isolation_grace: Duration,
    /// Longest time for which a starting node waits for the data of members that do not answer, and for its own name to
    /// appear in DNS. 1 s to 1 h. Raised, a node beside a member that hangs is ready later; lowered, it may serve
    /// without what a slow member holds, until that arrives.
    #[serde(with = "duration")]
    pub join_timeout: Duration,
    /// How long every node remembers an explicit removal. `isolation_grace` to 1 day, so that no copy outlives it. Raised,
    /// removals cost memory longer.
    #[serde(with = "duration")]
    pub tombstone_ttl: Duration,
    /// Time between two comparisons of what a peer holds of this node. 100 ms to 1 h. Raised, a lost record is missed
    /// longer; lowered, more messages at rest.
    #[serde(with = "duration")]
    pub verify_interval: Duration,
    /// How long changes wait for others to leave in one batch; the first after a rest leaves at once. 0 to 1 s. Raised,
    /// fewer and larger messages; lowered, a burst is seen sooner elsewhere.
    #[serde(with = "duration")]
    pub merge_window: Duration,
    /// Keys of changed records that may wait for one peer; beyond it they are forgotten and the next comparison finds
    /// them. 1,000 to 100,000,000. About 100 bytes each.
    pub outbox_limit: usize,
    /// How long the owner of a beat source may take to answer for a request that arrived here; then the next in line is
    /// asked. 10 ms to 1 min. Raised, clients wait longer beside a hanging member; lowered, a busy owner is passed over.
    #[serde(with = "duration")]
    pub forward_timeout: Duration,
    /// How long a node keeps its copy of what another one now owns, so that no replica sees a gap. 1 s to 1 h.
    #[serde(with = "duration")]
    pub handover_linger: Duration,
    /// Certificate chain of this node for links to others, PEM; read again when it changes. Empty: links are not
    /// encrypted. All three `tls_` settings go together.
    pub tls_cert: PathBuf,
    /// Private key that belongs to `tls_cert`, PEM.
    pub tls_key: PathBuf,
    /// Certificates that sign those of the other nodes, PEM.
    pub tls_ca: PathBuf,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            advertise: "127.0.0.1:8848".to_owned(),
            members: Vec::new(),
            members_file: PathBuf::new(),
            members_dns: String::new(),
            members_poll: Duration::from_secs(2),
            secret: Secret::default(),
            ping_interval: Duration::from_millis(500),
            suspect_after: Duration::from_secs(2),
            down_after: Duration::from_secs(5),
            grace: Duration::from_secs(30),
            isolation_grace: Duration::from_secs(600),
            join_timeout: Duration::from_secs(30),
            tombstone_ttl: Duration::from_secs(600),
            verify_interval: Duration::from_secs(5),
            merge_window: Duration::from_millis(10),
            outbox_limit: 1_000_000,
            forward_timeout: Duration::from_secs(1),
            handover_linger: Duration::from_secs(10),
            tls_cert: PathBuf::new(),
            tls_key: PathBuf::new(),
            tls_ca: PathBuf::new(),
        }
    }
}

impl Section for Settings {
    const SETTINGS: &'static [Setting] = &[
        Setting::new(
            "advertise",
            r#"HOST:PORT, such as "nomina-0.nomina:8848"; in a cluster one of its members"#,
            r#""127.0.0.1:8848""#,
            "This node's name, as the other nodes write it. Follows `server.http`.",
        ),
        Setting::new(
            "members",
            r#"a list of at most 256 names HOST[:PORT] (port 8848), such as ["nomina-0.nomina:8848"]; only one of `members`, `members_file` and `members_dns` may be set"#,
            "[]",
            "Names of all nodes, this one included. Without any of the three settings the node runs alone.",
        ),
        Setting::new(
            "members_file",
            "a path; only one of `members`, `members_file` and `members_dns` may be set",
            r#""""#,
            "File with the names of all nodes, in the format of `cluster.conf`; read again when it changes.",
        ),
        Setting::new(
            "members_dns",
            r#""HOST:PORT" for A and AAAA records, or the name of SRV records, such as "_http._tcp.nomina"; only one of `members`, `members_file` and `members_dns` may be set"#,
            r#""""#,
            "DNS name whose records are all nodes, also those that are not ready yet. SRV records give names that outlive an address.",
        ),
        Setting::new(
            "members_poll",
            r#"a duration from "100ms" to "1h""#,
            r#""2s""#,
            "Time between two looks at `members_file` or `members_dns`.",
        ),
        Setting::new(
            "secret",
            "a text without white space at its ends, at least 32 bytes long where there are other nodes",
            r#""""#,
            "What all nodes share to know each other; never shown.",
        )
        .hidden(),
        Setting::new(
            "ping_interval",
            r#"a duration from "10ms" to "1m", below `suspect_after`"#,
            r#""500ms""#,
            "Time between two signs of life between nodes.",
        ),
        Setting::new(
            "suspect_after",
            r#"a duration from "20ms" to "10m", below `down_after`"#,
            r#""2s""#,
            "Silence after which a member is shown as suspect.",
        ),
        Setting::new(
            "down_after",
            r#"a duration from "100ms" to "1h""#,
            r#""5s""#,
            "Silence after which a member is down, and others take over what it kept alive.",
        ),
        Setting::new(
            "grace",
            r#"a duration from "1s" to "1h""#,
            r#""30s""#,
            "How long the instances of a dead member stay listed for their publishers to find another node.",
        ),
        Setting::new(
            "isolation_grace",
            r#"a duration from `grace` to "24h""#,
            r#""10m""#,
            "The same on a node that hears less than half of the members.",
        ),
        Setting::new(
            "join_timeout",
            r#"a duration from "1s" to "1h""#,
            r#""30s""#,
            "Longest time for which a starting node waits for silent members, and for its own name in DNS.",
        ),
        Setting::new(
            "tombstone_ttl",
            r#"a duration from `isolation_grace` to "24h""#,
            r#""10m""#,
            "How long every node remembers an explicit removal.",
        ),
        Setting::new(
            "verify_interval",
            r#"a duration from "100ms" to "1h""#,
            r#""5s""#,
            "Time between two comparisons of what two nodes hold.",
        ),
        Setting::new(
            "merge_window",
            r#"a duration from "0s" to "1s""#,
            r#""10ms""#,
            "How long changes wait to leave for other nodes in one batch.",
        ),
        Setting::new(
            "outbox_limit",
            "a whole number from 1000 to 100000000",
            "1000000",
            "Changed records that may wait for one peer; beyond it the next comparison finds them.",
        ),
        Setting::new(
            "forward_timeout",
            r#"a duration from "10ms" to "1m""#,
            r#""1s""#,
            "How long the owner of a beat source may take to answer before the next in line is asked.",
        ),
        Setting::new(
            "handover_linger",
            r#"a duration from "1s" to "1h""#,
            r#""10s""#,
            "How long a node keeps its copy of what another node has taken over.",
        ),
        Setting::new(
            "tls_cert",
            "a path; `tls_cert`, `tls_key` and `tls_ca` are set together or not at all",
            r#""""#,
            "Certificate chain (PEM) of this node for links to other nodes; empty: links are not encrypted.",
        ),
        Setting::new(
            "tls_key",
            "a path; `tls_cert`, `tls_key` and `tls_ca` are set together or not at all",
            r#""""#,
            "Private key (PEM) of `tls_cert`.",
        ),
        Setting::new(
            "tls_ca",
            "a path; `tls_cert`, `tls_key` and `tls_ca` are set together or not at all",
            r#""""#,
            "Certificates (PEM) that sign those of the other nodes.",
        ),
    ];

    fn check(&self) -> Result<(), Problem> {
        Problem::unless(is_host_port(&self.advertise), "advertise", "not of the form HOST:PORT")?;
        self.check_members()?;
        self.check_secret()?;
        self.check_times()?;
        self.check_tls()
    }
}

impl Settings {
    /// Whether this node is one of several: a list of members is configured, be it of this node alone.
    #[must_use]
    pub fn is_clustered(&self) -> bool {
        !self.members.is_empty() || !self.members_file.as_os_str().is_empty() || !self.members_dns.is_empty()
    }

    /// Whether links between nodes are encrypted.
    #[must_use]
    pub fn has_tls(&self) -> bool {
        !self.tls_cert.as_os_str().is_empty()
    }

    fn check_members(&self) -> Result<(), Problem> {
        let sources = [
            ("members", !self.members.is_empty()),
            ("members_file", !self.members_file.as_os_str().is_empty()),
            ("members_dns", !self.members_dns.is_empty()),
        ];
        let mut set = sources.into_iter().filter_map(|(key, set)| set.then_some(key));
        if let (Some(first), Some(second)) = (set.next(), set.next()) {
            return Err(Problem::new(second, format!("cluster.{first} is set too")));
        }
        let Some(source) = Source::configured(self)? else { return Ok(()) };
        let me = MemberName::parse(&self.advertise).map_err(|error| Problem::new("advertise", error.to_string()))?;
        match source {
            Source::Fixed(members) => require(&members, &me),
            Source::File(_) | Source::Dns(_) => Ok(()),
        }
    }

    fn check_secret(&self) -> Result<(), Problem> {
        let secret = self.secret.reveal();
        Problem::unless(
            secret.trim() == secret,
            "secret",
            "there is white space at its start or end, most often a line end that came along from a file",
        )?;
        Problem::unless(
            secret != MASK,
            "secret",
            "this is the mask that `nomina config` prints, not the secret itself",
        )?;
        if self.is_clustered() && secret.len() < LEAST_SECRET_BYTES {
            let length = secret.len();
            return Err(Problem::new(
                "secret",
                format!("a cluster needs a secret of at least {LEAST_SECRET_BYTES} bytes, and it has {length}"),
            ));
        }
        Ok(())
    }

    fn check_times(&self) -> Result<(), Problem> {
        let range = "it is out of range";
        let within = |key, value: Duration, least_ms, most| {
            Problem::unless((Duration::from_millis(least_ms)..=most).contains(&value), key, range)
        };
        let minute = Duration::from_secs(60);
        within("members_poll", self.members_poll, 100, HOUR)?;
        within("ping_interval", self.ping_interval, 10, minute)?;
        within("suspect_after", self.suspect_after, 20, 10 * minute)?;
        within("down_after", self.down_after, 100, HOUR)?;
        within("grace", self.grace, 1_000, HOUR)?;
        within("isolation_grace", self.isolation_grace, 1_000, DAY)?;
        within("join_timeout", self.join_timeout, 1_000, HOUR)?;
        within("tombstone_ttl", self.tombstone_ttl, 1_000, DAY)?;
        within("verify_interval", self.verify_interval, 100, HOUR)?;
        within("merge_window", self.merge_window, 0, Duration::from_secs(1))?;
        within("forward_timeout", self.forward_timeout, 10, minute)?;
        within("handover_linger", self.handover_linger, 1_000, HOUR)?;
        Problem::unless((1_000..=100_000_000).contains(&self.outbox_limit), "outbox_limit", range)?;

        let below = self.ping_interval < self.suspect_after;
        Problem::unless(below, "ping_interval", "it is not below cluster.suspect_after")?;
        let below = self.suspect_after < self.down_after;
        Problem::unless(below, "suspect_after", "it is not below cluster.down_after")?;
        let above = self.isolation_grace >= self.grace;
        Problem::unless(above, "isolation_grace", "it is shorter than cluster.grace")?;
        let above = self.tombstone_ttl >= self.isolation_grace;
        Problem::unless(
            above,
            "tombstone_ttl",
            "it is shorter than cluster.isolation_grace: a removed instance could return",
        )
    }

    fn check_tls(&self) -> Result<(), Problem> {
        let paths = [("tls_cert", &self.tls_cert), ("tls_key", &self.tls_key), ("tls_ca", &self.tls_ca)];
        let missing = paths.iter().find(|(_, path)| path.as_os_str().is_empty());
        let set = paths.iter().find(|(_, path)| !path.as_os_str().is_empty());
        match (missing, set) {
            (Some((missing, _)), Some((set, _))) => {
                Err(Problem::new(missing, format!("cluster.{set} is set, and this is not")))
            }
            (Some(_), None) | (None, _) => Ok(()),
        }
    }
}

fn require(members: &MemberList, me: &MemberName) -> Result<(), Problem> {
    if members.contains(me) {
        return Ok(());
    }
    Err(Problem::new("advertise", format!("this node's name, {me}, is not among cluster.members: {members}")))
}

/// Also with port 0, which a node that runs alone may have.
fn is_host_port(name: &str) -> bool {
    name.rsplit_once(':').is_some_and(|(host, port)| {
        let bracketed = host.starts_with('[') && host.ends_with(']') && host.len() > 2;
        let plain = !host.is_empty() && !host.contains([':', '[', ']', '/', '@']);
        (bracketed || plain)
            && !host.contains(char::is_whitespace)
            && port.bytes().all(|byte| byte.is_ascii_digit())
            && port.parse::<u16>().is_ok()
    })
}

#[cfg(test)]
mod tests;
