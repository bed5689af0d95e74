//! The rules by which a command changes a service: (what is, command) → edits, or the reason why not.
//!
//! Nothing here reads a clock, waits or writes: a decider that fails, or panics, has changed nothing.

use std::{collections::BTreeMap, sync::Arc};

use smallvec::SmallVec;

use super::{
    command::{Error, Selection, ServiceChange, ServiceCommand},
    heartbeat::Periods,
    instance::{ConnectionId, Instance, Own, Parts},
    key::{InstanceKey, ServiceKey, Target},
    lease::{Verdict, judge},
    lease_table::Due,
    limits::Limits,
    list::{Ambiguous, InstanceList},
    overlay::{Overlay, OverlayChange},
    owners::Owners,
    publication::{IdGenerator, Kind, Publication},
    service::{Checker, ServiceSettings},
    share::Share,
    version::{OwnerId, Stamp, Version},
};
use crate::clock::Mono;

/// A service as a command finds it.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// Its key.
    pub key: &'a ServiceKey,
    /// Whether it exists.
    pub exists: bool,
    /// Its instances.
    pub instances: &'a InstanceList,
    /// What an operator says of it.
    pub settings: Option<&'a Arc<ServiceSettings>>,
}

/// What a decider needs beyond the service.
pub trait Context {
    /// What an operator had laid over an instance that expired not long ago.
    fn retained(&self, service: &ServiceKey, instance: &InstanceKey) -> Option<Overlay>;

    /// A number that no instance has had.
    fn snowflake(&self) -> u64;

    /// A stamp above all that this node has seen.
    fn stamp(&self) -> Stamp;

    /// Who the owners of shares are.
    fn owners(&self) -> &Owners;

    /// The stamp of the last explicit removal of an instance, if it was not long ago.
    fn removed(&self, service: &ServiceKey, instance: &InstanceKey) -> Option<Stamp>;

    /// Time now.
    fn now(&self) -> Mono;

    /// The limits of what is stored.
    fn limits(&self) -> &Limits;

    /// What a connection publishes in a service; `None` if it is not open.
    fn published(&self, connection: ConnectionId, service: &ServiceKey) -> Option<&[InstanceKey]>;
}

/// One step of a change. Steps cannot fail.
#[derive(Debug, Clone)]
pub enum Edit {
    /// Lists the instance in place of the one of the same key. A `beat` keeps it from now on for the period of its lease;
    /// without one it has the lease that it says, or none.
    Put {
        /// The new state.
        instance: Instance,
        /// Whether its lease begins, or begins anew.
        beat: bool,
    },
    /// Nothing changes but that the publisher of the instance was heard of just now.
    Touch(Arc<Instance>),
    /// Answers with the instance as it is.
    Show(Arc<Instance>),
    /// Removes the instance. What an operator laid over it is kept for a while if `retain`.
    Remove {
        /// Which one.
        key: InstanceKey,
        /// Whether the overlay is kept.
        retain: bool,
    },
    /// Remembers that the instance was removed explicitly.
    Removed {
        /// Which one.
        key: InstanceKey,
        /// When, in the order of all registrations and removals.
        stamp: Stamp,
        /// Whether it was removed here, and the other members are to be told.
        here: bool,
    },
    /// Remembers what a connection publishes in the service.
    Record(ConnectionId, Vec<InstanceKey>),
    /// Replaces what an operator says of the service, which exists from now on.
    Settings(Arc<ServiceSettings>),
    /// Removes the service.
    Delete,
}

/// What `command` does to the service in `view`.
///
/// # Errors
/// Why it has no effect.
pub fn decide(view: View<'_>, command: ServiceCommand, context: &impl Context) -> Result<Vec<Edit>, Error> {
    match command {
        ServiceCommand::Register(key, kind, publication) => register(view, key, kind, publication, context),
        ServiceCommand::Deregister(target, kind) => {
            let instance = find(view, &target)?;
            let present = instance.kind();
            if present != kind {
                let (service, endpoint) = (view.key.clone(), target.endpoint);
                return Err(Error::OtherKind { service, endpoint, present, asked: kind });
            }
            let held_by_connections_only = instance.shares().all(|share| share.connections && !share.beats);
            if held_by_connections_only {
                return Err(Error::HeldByConnection { service: view.key.clone(), endpoint: target.endpoint });
            }
            let stamp = context.stamp();
            Ok(vec![Edit::Removed { key: instance.key(), stamp, here: true }, strike(instance, stamp, context)])
        }
        ServiceCommand::Publish(connection, wanted) => publish(view, connection, wanted, context),
        ServiceCommand::Withdraw(connection, target) => withdraw(view, connection, &target, context),
        ServiceCommand::Renew(key) => match view.instances.find(&key) {
            Some(instance) => Ok(vec![renew(instance, context)]),
            None => Err(unknown(view.key, Target { endpoint: key.endpoint, cluster: Some(key.cluster) })),
        },
        ServiceCommand::Overlay(target, change) => {
            known(view)?;
            Ok(vec![overlay(find(view, &target)?, &change, context)?])
        }
        ServiceCommand::OverlayMany(selection, change) => {
            known(view)?;
            chosen(view, &selection).map(|instance| overlay(instance, &change, context)).collect()
        }
        ServiceCommand::SetHealth(target, healthy) => set_health(view, &target, healthy, context),
        ServiceCommand::Create(_) if view.exists => Err(Error::ServiceExists(view.key.clone())),
        ServiceCommand::Create(settings) => Ok(vec![Edit::Settings(Arc::new(settings))]),
        ServiceCommand::Update(change) => {
            known(view)?;
            Ok(vec![Edit::Settings(Arc::new(updated(view, change)))])
        }
        ServiceCommand::Delete => {
            known(view)?;
            match view.instances.len() {
                0 => Ok(vec![Edit::Delete]),
                count => Err(Error::ServiceNotEmpty { service: view.key.clone(), count }),
            }
        }
        ServiceCommand::SetCluster(name, cluster) => {
            known(view)?;
            let mut settings = view.settings.map(|shared| ServiceSettings::clone(shared)).unwrap_or_default();
            settings.clusters.insert(name, cluster);
            Ok(vec![Edit::Settings(Arc::new(settings))])
        }
    }
}

/// What the end of a connection does to the instances of this service that it published.
#[must_use]
pub fn close(view: View<'_>, connection: ConnectionId, published: &[InstanceKey], context: &impl Context) -> Vec<Edit> {
    let listed = published.iter().filter_map(|key| view.instances.find(key));
    listed.map(|instance| release(instance, connection, true, context)).collect()
}

/// What a lease that is due does to the instance that it keeps listed, looked at once more with the silence of now.
/// Removal only if `expire`. An instance that a connection publishes too merely loses the lease.
#[must_use]
pub fn expire(due: &Due, expire: bool, context: &impl Context) -> Option<Edit> {
    let instance = &due.held.instance;
    match judge(instance, due.silence) {
        Verdict::Gone | Verdict::Late if instance.has_connection() => Some(without_lease(instance, context)),
        Verdict::Gone if expire => Some(without_lease(instance, context)),
        Verdict::Gone | Verdict::Late if instance.is_well_here() => {
            let mut parts = instance.parts();
            if let Some(own) = &mut parts.own {
                own.publication.healthy = false;
                own.version = bumped(own.version, context);
            }
            Some(put_or_remove(parts, true, context))
        }
        Verdict::Gone | Verdict::Late | Verdict::Keep => None,
    }
}

fn register(
    view: View<'_>,
    key: InstanceKey,
    kind: Kind,
    publication: Publication,
    context: &impl Context,
) -> Result<Vec<Edit>, Error> {
    let present = view.instances.find(&key);
    let (_, instance) = published(view, key, kind, publication, None, context)?;
    Ok(vec![match present {
        Some(old) if says_the_same(old, &instance) && old.lease().is_some() => Edit::Touch(old.clone()),
        _ => Edit::Put { instance, beat: kind == Kind::Ephemeral },
    }])
}

fn publish(
    view: View<'_>,
    connection: ConnectionId,
    wanted: Vec<(InstanceKey, Publication)>,
    context: &impl Context,
) -> Result<Vec<Edit>, Error> {
    let before = context.published(connection, view.key).ok_or(Error::ConnectionGone)?;
    let wanted: BTreeMap<_, _> = wanted.into_iter().collect();
    let keys: Vec<_> = wanted.keys().cloned().collect();
    let dropped = before.iter().filter(|key| !wanted.contains_key(key)).filter_map(|key| view.instances.find(key));
    let mut edits: Vec<_> = dropped.map(|instance| release(instance, connection, false, context)).collect();
    for (key, publication) in wanted {
        let present = view.instances.find(&key);
        let (_, instance) = published(view, key, Kind::Ephemeral, publication, Some(connection), context)?;
        edits.push(match present {
            Some(old) if says_the_same(old, &instance) && old.connections().last() == Some(connection) => {
                Edit::Show(old.clone())
            }
            _ => Edit::Put { instance, beat: false },
        });
    }
    edits.push(Edit::Record(connection, keys));
    Ok(edits)
}

/// Whether this node already says what `next` lists, and it is what is listed.
fn says_the_same(old: &Instance, next: &Instance) -> bool {
    old.looks_like(next) && old.versions().next().is_some_and(|listed| listed.owner().is_self())
}

/// A beat for an instance that this node lists: it is well, and this node answers for its beats from now on.
fn renew(instance: &Arc<Instance>, context: &impl Context) -> Edit {
    if instance.beats_well_at(OwnerId::SELF) {
        return Edit::Touch(instance.clone());
    }
    let mut parts = instance.parts();
    let taken = |share: Share| Own {
        version: Version::new(share.version.stamp(), share.version.minor(), OwnerId::SELF),
        publication: share.publication,
        lease: None,
        connections: SmallVec::new(),
    };
    parts.own = match parts.own {
        // Its publisher has registered anew at a member that held itself to be the owner; here its beats come in.
        Some(own) => Some(match instance.later_beats(OwnerId::SELF).map(taken) {
            Some(later) => Own { version: later.version, publication: later.publication, ..own },
            None => own,
        }),
        // Of the shares of others the one that is listed: what its publisher said last.
        None => instance.shares().next().map(taken),
    };
    if let Some(own) = &mut parts.own {
        own.publication.healthy = true;
        own.version = bumped(own.version, context);
    }
    match parts.assemble(context.owners()) {
        Some(instance) => Edit::Put { instance, beat: true },
        None => Edit::Show(instance.clone()),
    }
}

fn withdraw(
    view: View<'_>,
    connection: ConnectionId,
    target: &Target,
    context: &impl Context,
) -> Result<Vec<Edit>, Error> {
    let before = context.published(connection, view.key).ok_or(Error::ConnectionGone)?;
    let named = match before {
        [only] => Some(only.clone()),
        _ => meant(before, target)?,
    };
    let Some(named) = named else { return Err(unknown(view.key, target.clone())) };
    let rest = before.iter().filter(|key| **key != named).cloned().collect();
    let mut edits = vec![Edit::Record(connection, rest)];
    edits.extend(view.instances.find(&named).map(|instance| release(instance, connection, false, context)));
    Ok(edits)
}

/// Which of `keys`, those of one publisher, `target` means: the rule of [`InstanceList::resolve`] among them alone.
fn meant(keys: &[InstanceKey], target: &Target) -> Result<Option<InstanceKey>, Error> {
    let named = |key: &&InstanceKey| key.cluster == target.cluster.clone().unwrap_or_default();
    let found: Vec<_> = keys.iter().filter(|key| key.endpoint == target.endpoint).collect();
    match (found.iter().copied().find(named), found.as_slice()) {
        (Some(key), _) => Ok(Some(key.clone())),
        (None, []) => Ok(None),
        (None, _) if target.cluster.is_some() => Ok(None),
        (None, [only]) => Ok(Some((*only).clone())),
        (None, several) => {
            let clusters = several.iter().map(|key| key.cluster.clone()).collect();
            Err(Ambiguous { endpoint: target.endpoint.clone(), clusters }.into())
        }
    }
}

/// The instance as a publisher of this node describes it: with the overlay, the id and the publishers that it has
/// already, and with `connection` as the newest of them.
fn published(
    view: View<'_>,
    key: InstanceKey,
    kind: Kind,
    publication: Publication,
    connection: Option<ConnectionId>,
    context: &impl Context,
) -> Result<(InstanceKey, Instance), Error> {
    let present = view.instances.find(&key);
    if let Some(other) = present.or_else(|| view.instances.iter().next())
        && other.kind() != kind
    {
        return Err(Error::KindConflict { service: view.key.clone(), present: other.kind(), asked: kind });
    }
    let (key, publication) = shared(view, key, publication);
    let mut parts = match present {
        Some(old) => old.parts(),
        None => {
            let snowflake = match IdGenerator::of(&publication.metadata) {
                IdGenerator::Simple => None,
                IdGenerator::Snowflake => Some(context.snowflake()),
            };
            let overlay = context.retained(view.key, &key).unwrap_or_default();
            Parts { key: key.clone(), kind, own: None, others: SmallVec::new(), overlay, snowflake }
        }
    };
    let (lease, mut connections) = parts.own.take().map_or_else(Default::default, |own| (own.lease, own.connections));
    if let Some(connection) = connection {
        connections.retain(|older| *older != connection);
        connections.push(connection);
    }
    let version = Version::new(context.stamp(), 0, OwnerId::SELF);
    parts.own = Some(Own { version, publication, lease, connections });
    let instance = parts.assemble(context.owners()).ok_or(Error::Internal)?;
    check_merged(&instance, context)?;
    Ok((key, instance))
}

/// Name and publication, sharing the memory of an instance that stands next to it.
pub(super) fn shared(view: View<'_>, key: InstanceKey, publication: Publication) -> (InstanceKey, Publication) {
    let neighbour = view.instances.find(&key).or_else(|| view.instances.iter().next());
    let Some(other) = neighbour else { return (key, publication) };
    let cluster = key.cluster.shared_with(other.cluster());
    let metadata = publication.metadata.shared_with(other.metadata());
    (InstanceKey { endpoint: key.endpoint, cluster }, Publication { metadata, ..publication })
}

/// What a publisher says and what an operator laid over it must be usable together, whichever came first.
fn check_merged(instance: &Instance, context: &impl Context) -> Result<(), Error> {
    context.limits().check_metadata_size(instance.metadata())?;
    Periods::of(instance.metadata())?;
    Ok(())
}

/// The end of what one connection published: the instance goes, unless another publisher holds it.
fn release(instance: &Instance, connection: ConnectionId, retain: bool, context: &impl Context) -> Edit {
    let mut parts = instance.parts();
    if let Some(own) = &mut parts.own {
        own.connections.retain(|held| *held != connection);
        if own.connections.is_empty() {
            own.version = bumped(own.version, context);
        }
    }
    put_or_remove(parts, retain, context)
}

/// The end of the beats of an instance, because they failed to come.
fn without_lease(instance: &Instance, context: &impl Context) -> Edit {
    let mut parts = instance.parts();
    if let Some(own) = &mut parts.own {
        own.lease = None;
        own.version = bumped(own.version, context);
    }
    put_or_remove(parts, true, context)
}

/// What an explicit removal does: beats keep the instance no longer, here or at any other member.
pub(super) fn strike(instance: &Instance, stamp: Stamp, context: &impl Context) -> Edit {
    let mut parts = instance.parts();
    if let Some(own) = parts.own.as_mut().filter(|own| own.lease.is_some() && own.version.stamp() < stamp) {
        own.lease = None;
        own.version = bumped(own.version, context);
    }
    parts.others.retain(|share| share.connections || share.version.stamp() >= stamp);
    put_or_remove(parts, false, context)
}

/// Lists what the parts make, or removes the instance if nobody keeps it any more. This node's share goes when it has no
/// publisher left.
pub(super) fn put_or_remove(mut parts: Parts, retain: bool, context: &impl Context) -> Edit {
    parts.own = parts.own.filter(|own| own.lease.is_some() || !own.connections.is_empty());
    let key = parts.key.clone();
    match parts.assemble(context.owners()) {
        Some(instance) => Edit::Put { instance, beat: false },
        None => Edit::Remove { key, retain },
    }
}

/// The version of a record after a change that is not a registration.
pub(super) fn bumped(version: Version, context: &impl Context) -> Version {
    version.changed().unwrap_or_else(|| Version::new(context.stamp(), 0, OwnerId::SELF))
}

fn overlay(instance: &Arc<Instance>, change: &OverlayChange, context: &impl Context) -> Result<Edit, Error> {
    let present = instance.overlay().cloned().unwrap_or_default();
    let overlay = present.changed(change, context.now());
    if overlay.sets_the_same(&present) {
        return Ok(Edit::Show(instance.clone()));
    }
    let next = instance.with_overlay(overlay);
    check_merged(&next, context)?;
    Ok(Edit::Put { instance: next, beat: false })
}

fn set_health(view: View<'_>, target: &Target, healthy: bool, context: &impl Context) -> Result<Vec<Edit>, Error> {
    known(view)?;
    let cluster = target.cluster.clone().unwrap_or_default();
    let checker = view.settings.and_then(|settings| settings.clusters.get(&cluster)).map(|set_up| &set_up.checker);
    if checker != Some(&Checker::None) {
        return Err(Error::Checked { service: view.key.clone(), cluster });
    }
    let instance = find(view, target)?;
    let mut parts = instance.parts();
    let Some(own) = &mut parts.own else {
        return Err(Error::HeldElsewhere { service: view.key.clone(), endpoint: target.endpoint.clone() });
    };
    if own.publication.healthy == healthy {
        return Ok(vec![Edit::Show(instance.clone())]);
    }
    own.publication.healthy = healthy;
    own.version = bumped(own.version, context);
    let instance = parts.assemble(context.owners()).ok_or(Error::Internal)?;
    Ok(vec![Edit::Put { instance, beat: false }])
}

fn updated(view: View<'_>, change: ServiceChange) -> ServiceSettings {
    let present = view.settings.map(|shared| ServiceSettings::clone(shared)).unwrap_or_default();
    ServiceSettings {
        protect_threshold: change.protect_threshold.unwrap_or(present.protect_threshold),
        metadata: change.metadata.unwrap_or(present.metadata),
        selector: change.selector.unwrap_or(present.selector),
        clusters: present.clusters,
    }
}

fn chosen<'a>(view: View<'a>, selection: &'a Selection) -> impl Iterator<Item = &'a Arc<Instance>> {
    let (all, listed) = match selection {
        Selection::All(kind) => (Some(*kind), &[][..]),
        Selection::Listed(targets) => (None, targets.as_slice()),
    };
    let every = all.into_iter().flat_map(move |kind| view.instances.iter().filter(move |i| i.kind() == kind));
    every.chain(
        listed.iter().filter_map(move |(target, kind)| {
            view.instances.resolve(target).ok().flatten().filter(|i| i.kind() == *kind)
        }),
    )
}

fn known(view: View<'_>) -> Result<(), Error> {
    if view.exists { Ok(()) } else { Err(Error::ServiceUnknown(view.key.clone())) }
}

fn find<'a>(view: View<'a>, target: &Target) -> Result<&'a Arc<Instance>, Error> {
    view.instances.resolve(target)?.ok_or_else(|| unknown(view.key, target.clone()))
}

fn unknown(service: &ServiceKey, target: Target) -> Error {
    Error::InstanceUnknown { service: service.clone(), target }
}
