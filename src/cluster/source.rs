//! Where the list of members comes from: settings, a file that is watched, or DNS.
//!
//! The list is state: a `watch` channel holds the latest, written by the task here and read by anyone. What cannot be read
//! leaves the last list standing. Started by the node.

mod dns;
mod follow;
mod read;

use std::{path::PathBuf, sync::Arc, time::Duration};

use tokio::sync::watch;
use tracing::{info, warn};

pub use self::{dns::DnsName, read::ReadError};
use self::{
    follow::{Follow, News},
    read::Reader,
};
use super::{
    member::{MemberError, MemberList, MemberName},
    settings::Settings,
};
use crate::{
    clock::Clock,
    setting::{Problem, duration},
    shutdown::Shutdown,
};

/// Time between two looks while a starting node waits for its own record. 1 s: that much later at most is it found.
const JOIN_POLL: Duration = Duration::from_secs(1);

/// Where the list comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// `cluster.members`: it never changes.
    Fixed(MemberList),
    /// `cluster.members_file`.
    File(PathBuf),
    /// `cluster.members_dns`.
    Dns(DnsName),
}

impl Source {
    /// The source that the settings name; `None` for a node that runs alone. That only one is set was checked before.
    ///
    /// # Errors
    /// The setting that names no members.
    pub fn configured(settings: &Settings) -> Result<Option<Self>, Problem> {
        if !settings.members.is_empty() {
            let names: Result<Vec<_>, _> = settings.members.iter().map(|name| MemberName::parse(name)).collect();
            let names = names.map_err(|error| Problem::new("members", error.to_string()))?;
            let list = MemberList::new(names).map_err(|error| Problem::new("members", error.to_string()))?;
            return Ok(Some(Self::Fixed(list)));
        }
        if !settings.members_file.as_os_str().is_empty() {
            return Ok(Some(Self::File(settings.members_file.clone())));
        }
        if !settings.members_dns.is_empty() {
            let name = DnsName::parse(&settings.members_dns);
            return name.map(|name| Some(Self::Dns(name))).map_err(|reason| Problem::new("members_dns", reason));
        }
        Ok(None)
    }

    const fn setting(&self) -> &'static str {
        match self {
            Self::Fixed(_) => "cluster.members",
            Self::File(_) => "cluster.members_file",
            Self::Dns(_) => "cluster.members_dns",
        }
    }
}

/// Why a node has no list of members that it is in.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting that names no members.
    #[error("cluster.{0}")]
    Setting(Problem),
    /// The node's own name is none.
    #[error("cluster.advertise")]
    Name(#[source] MemberError),
    /// There is no list.
    #[error("there is no list of members ({setting})")]
    Read {
        /// The setting that says where it is.
        setting: &'static str,
        /// What went wrong.
        source: ReadError,
    },
    /// A list without this node: it would serve beside the cluster.
    #[error("this node's name, {me} (cluster.advertise), is not among the members ({setting}): {members}")]
    NotListed {
        /// This node.
        me: MemberName,
        /// The setting that says where the list is.
        setting: &'static str,
        /// The list, as it was last seen.
        members: MemberList,
    },
}

/// The members, as they are now. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Members {
    me: MemberName,
    /// Written by the task of this module only. Kept here so that the list outlives that task.
    list: Arc<watch::Sender<Arc<MemberList>>>,
}

impl Members {
    /// A list that never changes.
    #[must_use]
    pub fn fixed(me: MemberName, list: MemberList) -> Self {
        Self { me, list: Arc::new(watch::Sender::new(Arc::new(list))) }
    }

    /// Reads the list, checks that this node is in it, and follows it until the drain. `None`: the node runs alone.
    ///
    /// * With DNS it waits for the own record, which may come only after the node runs, at most `join_timeout` and
    ///   one look more.
    /// * May be dropped while it waits; nothing is left behind.
    ///
    /// # Errors
    /// [`Error`]: the node must not serve.
    pub async fn start(settings: &Settings, clock: Clock, shutdown: &Shutdown) -> Result<Option<Self>, Error> {
        let Some(source) = Source::configured(settings).map_err(Error::Setting)? else { return Ok(None) };
        let me = MemberName::parse(&settings.advertise).map_err(Error::Name)?;
        let setting = source.setting();
        let bound = match source {
            Source::Fixed(_) | Source::File(_) => Duration::ZERO,
            Source::Dns(_) => settings.join_timeout,
        };
        let mut reader = Reader::new(source, &me);
        let list = first(&mut reader, &me, setting, bound, clock).await?;
        info!(me = %me, members = %list, source = setting, "member list read");
        let members = Self::fixed(me, list);
        if reader.can_change() {
            let (poll, task, drain) = (settings.members_poll, members.clone(), shutdown.clone());
            shutdown.spawn(async move { follow(reader, task, poll, setting, &drain).await });
        }
        Ok(Some(members))
    }

    /// This node.
    #[must_use]
    pub const fn me(&self) -> &MemberName {
        &self.me
    }

    /// The list now.
    #[must_use]
    pub fn list(&self) -> Arc<MemberList> {
        self.list.borrow().clone()
    }

    /// The list, to wait for its changes.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Arc<MemberList>> {
        self.list.subscribe()
    }

    /// Whether this node is in the list now. If not it must not say that it is ready.
    #[must_use]
    pub fn is_listed(&self) -> bool {
        self.list.borrow().contains(&self.me)
    }
}

/// The first list that has this node, within `bound`.
async fn first(
    reader: &mut Reader,
    me: &MemberName,
    setting: &'static str,
    bound: Duration,
    clock: Clock,
) -> Result<MemberList, Error> {
    let begun = clock.now();
    let mut told = false;
    loop {
        let missing = match reader.read().await {
            Ok(list) if list.contains(me) => return Ok(list),
            Ok(members) => Error::NotListed { me: me.clone(), setting, members },
            Err(source) => Error::Read { setting, source },
        };
        let left = bound.saturating_sub(clock.now().since(begun));
        if left.is_zero() {
            return Err(missing);
        }
        if !std::mem::replace(&mut told, true) {
            let bound = duration::text(bound).unwrap_or_default();
            info!(me = %me, bound, reason = %whole(&missing), "waiting for the own name in the list of members");
        }
        tokio::time::sleep(JOIN_POLL.min(left)).await;
    }
}

/// Looks every `poll` until the drain.
async fn follow(mut reader: Reader, members: Members, poll: Duration, setting: &'static str, shutdown: &Shutdown) {
    let mut state = Follow::new(members.me.clone(), members.list());
    let look = async {
        loop {
            tokio::time::sleep(poll).await;
            for news in state.take(reader.read().await) {
                tell(&news, setting);
                if let News::List { list, .. } = news {
                    members.list.send_replace(list);
                }
            }
        }
    };
    tokio::select! {
        () = look => {}
        () = shutdown.draining() => {}
    }
}

fn tell(news: &News, setting: &'static str) {
    match news {
        News::List { list, difference } => {
            let names = |names: &[MemberName]| names.iter().map(MemberName::as_str).collect::<Vec<_>>().join(", ");
            let (joined, left) = (names(&difference.joined), names(&difference.left));
            info!(source = setting, joined, left, members = list.len(), "member list changed");
        }
        News::Failing(error) => {
            warn!(source = setting, error = %whole(error), "member list cannot be read, keeping the last one");
        }
        News::Readable => info!(source = setting, "member list can be read again"),
        News::Unlisted(me) => {
            warn!(source = setting, me = %me, "this node is no longer in the list of members, and not ready");
        }
        News::Listed(me) => info!(source = setting, me = %me, "this node is in the list of members again"),
    }
}

/// An error and what caused it, in one line.
fn whole(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests;
