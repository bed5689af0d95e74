//! Who answers for a beat source now: its owner, or who is next in line while that one cannot be reached.

use std::{collections::BTreeMap, sync::Arc};

use arc_swap::ArcSwap;
use smallvec::SmallVec;

use super::{epoch::Epoch, member::MemberName, ownership::Eligible};
use crate::registry::{Endpoint, ServiceKey, hash};

/// The cluster as forwarding sees it at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// This node.
    pub me: MemberName,
    /// The members that may own beat sources.
    pub eligible: Eligible,
    /// The other members that are up, with the last epoch that is known of each. A suspect is not among them.
    pub up: BTreeMap<MemberName, Epoch>,
}

/// Where a write may go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hop {
    /// It is carried out by this node.
    Here,
    /// It is sent to another member.
    There {
        /// The member.
        member: MemberName,
        /// What answers under an earlier epoch is gone.
        epoch: Epoch,
    },
}

/// The way of each write, always the present one. Cheap to clone; all clones see the same.
///
/// Written by the task that watches the members; read by anyone, without waiting.
#[derive(Debug, Clone, Default)]
pub struct Routes(Option<Arc<ArcSwap<View>>>);

impl Routes {
    /// The routes of a node that runs alone: everything is here.
    #[must_use]
    pub const fn standalone() -> Self {
        Self(None)
    }

    /// The routes of a member.
    #[must_use]
    pub fn new(view: View) -> Self {
        Self(Some(Arc::new(ArcSwap::from_pointee(view))))
    }

    /// Replaces the view, if it is another one. A node that runs alone has none.
    pub fn publish(&self, view: View) {
        if let Some(current) = &self.0
            && **current.load() != view
        {
            current.store(Arc::new(view));
        }
    }

    /// Who answers for the beat source: the first of [`Routes::route`].
    ///
    /// Cost: a hash of the name and a few nanoseconds a member; allocates nothing as long as the owner is up.
    #[must_use]
    pub fn first(&self, service: &ServiceKey, endpoint: &Endpoint) -> Hop {
        let Some(view) = &self.0 else { return Hop::Here };
        let view = view.load();
        let key = hash::endpoint(service, endpoint);
        match view.eligible.owner(key) {
            None => Hop::Here,
            Some(owner) => view.hop(owner).or_else(|| view.line(key).next()).unwrap_or(Hop::Here),
        }
    }

    /// Who answers for the beat source, then who does if that one cannot be reached, and so on: eligible members that are
    /// up. This node is the last one, in its place in the line or after all others.
    #[must_use]
    pub fn route(&self, service: &ServiceKey, endpoint: &Endpoint) -> Route {
        let mut hops = SmallVec::new();
        if let Some(view) = &self.0 {
            hops.extend(view.load().line(hash::endpoint(service, endpoint)).take_while(|hop| *hop != Hop::Here));
        }
        hops.push(Hop::Here);
        Route(hops.into_iter())
    }
}

impl View {
    fn line(&self, key: u64) -> impl Iterator<Item = Hop> {
        self.eligible.in_line(key).filter_map(|name| self.hop(name))
    }

    /// The way to an eligible member; `None` if it is not up.
    fn hop(&self, name: &MemberName) -> Option<Hop> {
        if *name == self.me {
            return Some(Hop::Here);
        }
        self.up.get(name).map(|epoch| Hop::There { member: name.clone(), epoch: *epoch })
    }
}

/// Where a write may go, one after the other.
#[derive(Debug, Clone)]
pub struct Route(smallvec::IntoIter<[Hop; 4]>);

impl Iterator for Route {
    type Item = Hop;

    fn next(&mut self) -> Option<Hop> {
        self.0.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Limits;

    fn name(host: &str) -> MemberName {
        MemberName::parse(host).unwrap()
    }

    fn source(port: i64) -> (ServiceKey, Endpoint) {
        let limits = Limits::default();
        (limits.service_key("", "", "s").unwrap(), limits.endpoint("10.0.0.1", port).unwrap())
    }

    fn view(me: &str, eligible: &[&str], up: &[&str]) -> View {
        let eligible = Eligible::new(eligible.iter().map(|host| name(host)));
        View { me: name(me), eligible, up: up.iter().map(|host| (name(host), Epoch::new(1))).collect() }
    }

    fn hosts(routes: &Routes, port: i64) -> Vec<String> {
        let (service, endpoint) = source(port);
        let hops: Vec<_> = routes.route(&service, &endpoint).collect();
        assert_eq!(hops.first(), Some(&routes.first(&service, &endpoint)));
        hops.into_iter()
            .map(|hop| match hop {
                Hop::Here => "here".to_owned(),
                Hop::There { member, .. } => member.host().to_owned(),
            })
            .collect()
    }

    #[test]
    fn who_runs_alone_does_everything() {
        assert_eq!(hosts(&Routes::standalone(), 1), ["here"]);
        Routes::standalone().publish(view("a", &["b"], &["b"]));
    }

    #[test]
    fn the_line_goes_on_past_who_is_not_up_and_ends_here() {
        let routes = Routes::new(view("a", &["a", "b", "c"], &["b", "c"]));
        let whole = (1..100).map(|port| (port, hosts(&routes, port)));
        let (port, line) = whole.into_iter().find(|(_, line)| line.len() == 3).unwrap();
        assert_eq!(line.last().unwrap(), "here");
        routes.publish(view("a", &["a", "b", "c"], &[&line[1]]));
        assert_eq!(hosts(&routes, port), [line[1].as_str(), "here"]);
        routes.publish(view("a", &["a", "b", "c"], &[]));
        assert_eq!(hosts(&routes, port), ["here"]);
        routes.publish(view("a", &["b", "c"], &["b", "c"]));
        assert_eq!(hosts(&routes, port), line, "who is not eligible is still its own last resort");
        routes.publish(view("a", &[], &["b"]));
        assert_eq!(hosts(&routes, port), ["here"]);
    }

    #[test]
    fn every_member_finds_the_same_owner() {
        for port in 1..50 {
            let owner_at = |me: &str| {
                let others: Vec<_> = ["a", "b", "c"].into_iter().filter(|host| *host != me).collect();
                let first = hosts(&Routes::new(view(me, &["a", "b", "c"], &others)), port).remove(0);
                if first == "here" { me.to_owned() } else { first }
            };
            assert_eq!(owner_at("a"), owner_at("b"));
            assert_eq!(owner_at("b"), owner_at("c"));
        }
    }
}
