//! A network within one process, with the faults of a real one.
//!
//! It keeps what TCP promises and nothing more: within one link messages arrive in order and once; a path that is cut
//! holds them back rather than losing them; when a link breaks nobody knows how much has arrived, and what had can come in
//! after a newer link has begun. All times are tokio's, and it draws nothing at random: on a runtime of one thread with
//! paused time two runs are the same.

mod path;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use self::path::{Carrier, Direction, End, Meter, Path};
use super::{Accept, BoxFuture, Dialled, LINK_CAPACITY, Link, Transport, Unreachable};
use crate::{clock::Clock, cluster::member::MemberName, shutdown::Shutdown, wire::pb::peer as pb};

/// What a refused connection names: the network has no addresses.
const NO_ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), 0);

/// What a connection breaks with.
const RESET: &str = "connection reset";

/// What becomes of the messages that are under way when a link breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// They are lost, and both ends see the break at once.
    Lost,
    /// Those of the dialler arrive after this time, and only then does the acceptor see the break; the dialler sees it at
    /// once, and may have opened another link by then.
    Late(Duration),
}

/// How long messages take beyond the delay of the path: asked once for each, with sender and receiver.
pub type Jitter = Box<dyn FnMut(&MemberName, &MemberName) -> Duration + Send>;

/// The network. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Network {
    inner: Arc<Inner>,
}

struct Inner {
    clock: Clock,
    shutdown: Shutdown,
    /// How long a dial waits for a path that is cut.
    connect_timeout: Duration,
    state: Mutex<State>,
    jitter: Mutex<Option<Jitter>>,
}

#[derive(Default)]
struct State {
    /// What answers for a member; `None` after it has left.
    members: BTreeMap<MemberName, Option<Arc<dyn Accept>>>,
    /// By sender and receiver.
    paths: BTreeMap<(MemberName, MemberName), watch::Sender<Path>>,
    /// By sender and receiver.
    meters: BTreeMap<(MemberName, MemberName), Arc<Meter>>,
    /// By number, in the order in which they were opened.
    links: BTreeMap<u64, Open>,
    opened: u64,
}

/// A link that has not ended.
struct Open {
    from: MemberName,
    to: MemberName,
    end: watch::Sender<End>,
}

impl Network {
    /// A network without members, whose messages take no time.
    ///
    /// * `connect_timeout`: how long a dial waits while a path is cut.
    #[must_use]
    pub fn new(clock: Clock, connect_timeout: Duration, shutdown: Shutdown) -> Self {
        let inner = Inner { clock, shutdown, connect_timeout, state: Mutex::default(), jitter: Mutex::new(None) };
        Self { inner: Arc::new(inner) }
    }

    /// Puts `name` on the network, or a new process of that name in the place of the old one, whose links break.
    pub fn join(&self, name: &MemberName, accept: Arc<dyn Accept>) -> Member {
        self.leave(name);
        self.inner.state.lock().members.insert(name.clone(), Some(accept));
        Member { name: name.clone(), network: self.clone() }
    }

    /// The way of a process that ends: its links break, and from now on connections are refused.
    pub fn leave(&self, name: &MemberName) {
        self.break_where(Fate::Lost, |from, to| from == name || to == name);
        if let Some(accept) = self.inner.state.lock().members.get_mut(name) {
            *accept = None;
        }
    }

    /// The transport of a member that is not on the network itself, or not yet: it dials, and nobody can dial it.
    #[must_use]
    pub fn visitor(&self, name: &MemberName) -> Member {
        Member { name: name.clone(), network: self.clone() }
    }

    /// From now on every message from `from` to `to` takes `delay`.
    pub fn delay(&self, from: &MemberName, to: &MemberName, delay: Duration) {
        self.path(from, to).send_modify(|path| path.delay = delay);
    }

    /// Adds what `jitter` says to the delay of each message; within a link they stay in order.
    pub fn set_jitter(&self, jitter: Jitter) {
        *self.inner.jitter.lock() = Some(jitter);
    }

    /// Nothing gets from `from` to `to` until [`Network::heal`]; the way back stays as it is.
    ///
    /// * `breaks_after`: when a link in either direction between the two breaks; `None`: never, it hangs half open, and
    ///   what was held back arrives when the path is healed.
    pub fn cut(&self, from: &MemberName, to: &MemberName, breaks_after: Option<Duration>) {
        self.path(from, to).send_modify(|path| path.cut = Some(breaks_after));
    }

    /// Cuts both ways between `a` and `b`.
    pub fn cut_both(&self, a: &MemberName, b: &MemberName, breaks_after: Option<Duration>) {
        self.cut(a, b, breaks_after);
        self.cut(b, a, breaks_after);
    }

    /// Parts the network: each of `left` from all that are not, both ways.
    pub fn part(&self, left: &[MemberName], breaks_after: Option<Duration>) {
        let left: BTreeSet<_> = left.iter().collect();
        for a in self.names() {
            for b in self.names() {
                if left.contains(&a) && !left.contains(&b) {
                    self.cut_both(&a, &b, breaks_after);
                }
            }
        }
    }

    /// Undoes [`Network::cut`] from `from` to `to`.
    pub fn heal(&self, from: &MemberName, to: &MemberName) {
        self.path(from, to).send_modify(|path| path.cut = None);
    }

    /// Undoes every cut. Delays stay.
    pub fn heal_all(&self) {
        for path in self.inner.state.lock().paths.values() {
            path.send_modify(|path| path.cut = None);
        }
    }

    /// Breaks the links that `from` has opened to `to`; new ones can be opened. Returns how many there were.
    pub fn break_links(&self, from: &MemberName, to: &MemberName, fate: Fate) -> usize {
        self.break_where(fate, |dialler, acceptor| dialler == from && acceptor == to)
    }

    /// How many links are open.
    #[must_use]
    pub fn links(&self) -> usize {
        self.inner.state.lock().links.len()
    }

    /// How many messages, of how many bytes together, have been sent on links from `from` to `to`, answers on links that
    /// `to` has opened included. Their frames are not counted.
    #[must_use]
    pub fn sent(&self, from: &MemberName, to: &MemberName) -> (u64, u64) {
        let meter = self.meter(from, to);
        (meter.messages.load(Ordering::Relaxed), meter.bytes.load(Ordering::Relaxed))
    }

    fn meter(&self, from: &MemberName, to: &MemberName) -> Arc<Meter> {
        self.inner.state.lock().meters.entry((from.clone(), to.clone())).or_default().clone()
    }

    fn break_where(&self, fate: Fate, which: impl Fn(&MemberName, &MemberName) -> bool) -> usize {
        let mut state = self.inner.state.lock();
        let before = state.links.len();
        state.links.retain(|_, link| {
            let broken = which(&link.from, &link.to);
            if broken {
                link.end.send_replace(match fate {
                    Fate::Lost => End::Lost,
                    Fate::Late(after) => End::Late(after),
                });
            }
            !broken
        });
        before - state.links.len()
    }

    fn names(&self) -> Vec<MemberName> {
        self.inner.state.lock().members.keys().cloned().collect()
    }

    fn path(&self, from: &MemberName, to: &MemberName) -> watch::Sender<Path> {
        let mut state = self.inner.state.lock();
        state.paths.entry((from.clone(), to.clone())).or_insert_with(|| watch::Sender::new(Path::default())).clone()
    }

    fn carrier(&self, from: &MemberName, to: &MemberName) -> Carrier {
        let inner = self.inner.clone();
        let ends = (from.clone(), to.clone());
        let jitter = move || inner.jitter.lock().as_mut().map_or(Duration::ZERO, |jitter| jitter(&ends.0, &ends.1));
        Carrier::new(self.inner.clock, self.path(from, to).subscribe(), self.meter(from, to), Box::new(jitter))
    }

    /// What answers for `to`, after a first packet there and back, as TCP sends them.
    async fn connect(self, from: MemberName, to: MemberName) -> Result<Arc<dyn Accept>, Unreachable> {
        let answering = || self.inner.state.lock().members.get(&to).cloned();
        if answering().is_none() {
            return Err(Unreachable::Unresolved { member: to.clone(), reason: "no such host".to_owned() });
        }
        let waited = self.inner.connect_timeout;
        let (mut there, mut back) = (self.carrier(&from, &to), self.carrier(&to, &from));
        let trip = async {
            there.pass().await;
            let accept = answering().flatten();
            back.pass().await;
            accept
        };
        match tokio::time::timeout(waited, trip).await {
            Err(_) => Err(Unreachable::Timeout { member: to, waited }),
            Ok(None) => Err(Unreachable::Refused { member: to, address: NO_ADDRESS }),
            Ok(Some(accept)) => match answering().flatten() {
                Some(alive) if Arc::ptr_eq(&alive, &accept) => Ok(accept),
                Some(_) | None => Err(Unreachable::Broken { member: to, reason: RESET.to_owned() }),
            },
        }
    }

    async fn open(self, from: MemberName, to: MemberName) -> Result<Dialled, Unreachable> {
        let accept = self.clone().connect(from.clone(), to.clone()).await?;
        let (sender, to_carry) = mpsc::channel(LINK_CAPACITY);
        let (deliver, receiver) = mpsc::channel(LINK_CAPACITY);
        let (answer, answers_to_carry) = mpsc::channel(LINK_CAPACITY);
        let (deliver_answer, answers) = mpsc::channel(LINK_CAPACITY);
        let end = watch::Sender::new(End::Open);
        let number = {
            let mut state = self.inner.state.lock();
            state.opened += 1;
            let number = state.opened;
            state.links.insert(number, Open { from: from.clone(), to: to.clone(), end: end.clone() });
            number
        };
        let (there, back) = (self.carrier(&from, &to), self.carrier(&to, &from));
        let (dialler_gone, acceptor_gone) = (CancellationToken::new(), CancellationToken::new());
        let requests = Direction {
            from: to_carry,
            to: deliver,
            end: end.clone(),
            source_gone: dialler_gone.clone(),
            target_gone: acceptor_gone.clone(),
            forth: true,
        };
        let answers_direction = Direction {
            from: answers_to_carry,
            to: deliver_answer,
            end,
            source_gone: acceptor_gone,
            target_gone: dialler_gone,
            forth: false,
        };
        let network = self.clone();
        self.inner.shutdown.spawn_detached(async move {
            tokio::join!(there.carry(requests), back.carry(answers_direction));
            network.inner.state.lock().links.remove(&number);
        });
        accept.link(from, Link { sender: answer, receiver });
        Ok(Link { sender, receiver: answers })
    }

    /// Carries a request there and its answer back. What has been sent arrives, even if the caller gives up.
    async fn call<Q, A>(
        self,
        from: MemberName,
        to: MemberName,
        request: Q,
        answer: impl FnOnce(Arc<dyn Accept>, MemberName, Q) -> BoxFuture<'static, A> + Send + 'static,
    ) -> Result<A, Unreachable>
    where
        Q: Send + 'static,
        A: Send + 'static,
    {
        let accept = self.clone().connect(from.clone(), to.clone()).await?;
        let (mut there, mut back) = (self.carrier(&from, &to), self.carrier(&to, &from));
        let (reply, replied) = oneshot::channel();
        let network = self.clone();
        let member = to.clone();
        self.inner.shutdown.spawn_detached(async move {
            let carried = async {
                there.pass_or_break().await?;
                // A process that has ended answers nothing; its successor knows nothing of the request.
                let alive = network.inner.state.lock().members.get(&to).cloned().flatten();
                if !alive.is_some_and(|alive| Arc::ptr_eq(&alive, &accept)) {
                    return None;
                }
                let answer = answer(accept, from, request).await;
                back.pass_or_break().await?;
                Some(answer)
            };
            // Dropped without an answer, the channel says that it broke.
            if let Some(answer) = carried.await {
                let _ = reply.send(answer);
            }
        });
        replied.await.map_err(|_| Unreachable::Broken { member, reason: RESET.to_owned() })
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network").field("links", &self.links()).finish_non_exhaustive()
    }
}

/// The transport of one member of a [`Network`].
#[derive(Debug, Clone)]
pub struct Member {
    name: MemberName,
    network: Network,
}

impl Transport for Member {
    fn link(&self, to: &MemberName) -> BoxFuture<'static, Result<Dialled, Unreachable>> {
        Box::pin(self.network.clone().open(self.name.clone(), to.clone()))
    }

    fn forward(
        &self,
        to: &MemberName,
        request: pb::ForwardRequest,
    ) -> BoxFuture<'static, Result<pb::ForwardResponse, Unreachable>> {
        let call = |accept: Arc<dyn Accept>, from, request| accept.forward(from, request);
        Box::pin(self.network.clone().call(self.name.clone(), to.clone(), request, call))
    }

    fn list_orphans(
        &self,
        to: &MemberName,
        request: pb::ListOrphansRequest,
    ) -> BoxFuture<'static, Result<pb::ListOrphansResponse, Unreachable>> {
        let call = |accept: Arc<dyn Accept>, from, request| accept.list_orphans(from, request);
        Box::pin(self.network.clone().call(self.name.clone(), to.clone(), request, call))
    }
}

#[cfg(test)]
pub(in crate::cluster) mod tests;
