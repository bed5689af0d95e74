//! Pushes to clients of the v1 HTTP API by UDP, and the table of everybody who follows a service.
//!
//! A list call subscribes its caller for a while ([`Push::subscribe`]). Each service that has subscribers has one task,
//! which waits for changes, merges them and sends one datagram to each subscriber; one socket sends for all and reads the
//! acks. What is lost twice is given up: clients poll all the same.

pub mod agent;
mod audience;
mod counters;
mod datagram;
mod deliver;
mod pending;
mod schedule;
pub mod sdk;
mod settings;
pub mod subscriber;
mod subscription;
mod udp;

use std::{io, net::SocketAddr, sync::Arc};

use dashmap::{DashMap, Entry as Slot};

use self::{
    audience::{Audience, Entered},
    deliver::Deliver,
    udp::Udp,
};
pub use self::{
    counters::{Figures, State},
    settings::{OtherAddresses, Settings},
    subscriber::{Protocol, Subscriber, SubscriberCounts, Subscribers, Subscription},
    subscription::{Refusal, Subscribed, UdpSubscription},
};
use crate::{
    registry::{RegistryHandle, ServiceKey},
    shutdown::Shutdown,
};

/// Why pushing cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The socket cannot be bound.
    #[error("`push.udp`: cannot send from {address}")]
    Bind {
        /// The address of the setting.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
}

/// Access to pushes and subscribers. Cheap to clone; all clones see the same.
#[derive(Debug, Clone)]
pub struct Push {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    registry: RegistryHandle,
    settings: Settings,
    shutdown: Shutdown,
    udp: Arc<Udp>,
    subscribers: Subscribers,
    /// The services that have UDP subscribers. An audience is put in by whoever subscribes and taken out by its task.
    audiences: DashMap<ServiceKey, Arc<Audience>, ahash::RandomState>,
}

impl Push {
    /// Binds the socket and starts to read acks. Must be called inside a tokio runtime; all its tasks end when
    /// `shutdown` drains.
    ///
    /// # Errors
    /// [`Error::Bind`] if the address of the settings is in use, is not one of this machine, or is not permitted.
    pub fn start(registry: RegistryHandle, settings: Settings, shutdown: &Shutdown) -> Result<Self, Error> {
        let udp = Arc::new(Udp::bind(registry.clone(), &settings)?);
        let (reader, timer) = (udp.clone(), udp.clone());
        let (read, watched) = (shutdown.clone(), shutdown.clone());
        shutdown.spawn(async move {
            tokio::select! {
                () = read.draining() => {}
                () = reader.read_acks() => {}
            }
        });
        shutdown.spawn(async move {
            tokio::select! {
                () = watched.draining() => {}
                () = timer.watch_time() => {}
            }
        });
        let inner = Inner {
            registry,
            settings,
            shutdown: shutdown.clone(),
            udp,
            subscribers: Subscribers::default(),
            audiences: DashMap::default(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Has the caller told of changes of a service for as long as `push.subscriber_lifetime`, from now on; repeating it
    /// prolongs that. Call it before the list of the answer is read: then no change is missed in between.
    ///
    /// Never waits, resolves no names, and creates no service.
    #[must_use]
    pub fn subscribe(&self, call: &UdpSubscription<'_>) -> Subscribed {
        match self.inner.subscribe(call) {
            Ok(()) => Subscribed::Yes,
            Err(refusal) => Subscribed::No(refusal),
        }
    }

    /// The table of all subscribers, for other protocols to add theirs, and for lists.
    #[must_use]
    pub fn subscribers(&self) -> &Subscribers {
        &self.inner.subscribers
    }

    /// Where datagrams are sent from.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.inner.udp.local()
    }

    /// Counts since the process started, and the present numbers of subscribers.
    #[must_use]
    pub fn figures(&self) -> Figures {
        Figures {
            waiting: self.inner.udp.waiting(),
            services: self.inner.audiences.len(),
            subscribers: self.inner.subscribers.counts(),
            ..self.inner.udp.counters.figures()
        }
    }

    /// What became of the pushes since the last [`Push::reset`].
    #[must_use]
    pub fn state(&self) -> State {
        self.inner.udp.counters.state()
    }

    /// Lets [`Push::state`] begin at zero. [`Push::figures`] are not touched.
    pub fn reset(&self) {
        self.inner.udp.counters.reset();
    }
}

impl Inner {
    fn subscribe(self: &Arc<Self>, call: &UdpSubscription<'_>) -> Result<(), Refusal> {
        let switches = self.registry.switches();
        let place = subscription::place(call, &switches, self.settings.other_addresses, self.udp.local())?;
        loop {
            if self.shutdown.is_draining() {
                return Err(Refusal::Draining);
            }
            let audience = self.audience(call.service)?;
            match audience.enter(call, place, self.registry.now(), &self.settings, &self.subscribers) {
                Entered::Yes => return Ok(()),
                Entered::No(refusal) => return Err(refusal),
                Entered::Closed => self.retire(&audience),
            }
        }
    }

    /// The audience of `service`; opens one, with its task, if there is none and it could take anybody in.
    fn audience(self: &Arc<Self>, service: &ServiceKey) -> Result<Arc<Audience>, Refusal> {
        if let Some(audience) = self.audiences.get(service) {
            return Ok(audience.clone());
        }
        if self.subscribers.counts().udp >= self.settings.max_subscribers {
            return Err(Refusal::Full);
        }
        let (audience, watch) = match self.audiences.entry(service.clone()) {
            Slot::Occupied(slot) => return Ok(slot.get().clone()),
            Slot::Vacant(slot) => {
                let audience = Arc::new(Audience::new(service.clone()));
                let watch = self.registry.watch(service.clone());
                slot.insert(audience.clone());
                (audience, watch)
            }
        };
        // Not while the map is locked: a runtime that is about to end drops the task, which takes the audience out.
        self.shutdown.spawn(Deliver::new(self.clone(), audience.clone()).run(watch));
        Ok(audience)
    }

    /// Takes out an audience that is closed.
    fn retire(&self, audience: &Arc<Audience>) {
        self.audiences.remove_if(audience.service(), |_, present| Arc::ptr_eq(present, audience));
    }
}

#[cfg(test)]
mod tests;
