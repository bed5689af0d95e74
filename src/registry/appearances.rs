//! Which services appear and disappear, for those who watch names rather than instances. Costs next to nothing while
//! nobody does.

use tokio::sync::broadcast;

use super::key::ServiceKey;

/// Services that may wait for a slow follower: a few seconds of a restart of everything. Beyond it the follower is told
/// that it missed some, and must look at all.
const WAITING: usize = 4_096;

/// Tells followers that a service has appeared or disappeared. Written by the apply loop only.
#[derive(Debug)]
pub struct Appearances(broadcast::Sender<ServiceKey>);

impl Default for Appearances {
    fn default() -> Self {
        Self(broadcast::Sender::new(WAITING))
    }
}

impl Appearances {
    pub(super) fn tell(&self, key: ServiceKey) {
        // Nobody follows: nobody is told.
        let _ = self.0.send(key);
    }

    /// Starts to follow what is told after this call.
    #[must_use]
    pub fn follow(&self) -> Appearance {
        Appearance(self.0.subscribe())
    }
}

/// Follows which services appear and disappear.
#[derive(Debug)]
pub struct Appearance(broadcast::Receiver<ServiceKey>);

/// What a follower is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// Whether this service is there has changed at least once; what is so now is to be read from the registry.
    Of(ServiceKey),
    /// Too many changed to be told one by one: any may have.
    Any,
}

impl Appearance {
    /// Waits for the next change. `None`: the registry is gone.
    pub async fn next(&mut self) -> Option<Turn> {
        match self.0.recv().await {
            Ok(key) => Some(Turn::Of(key)),
            Err(broadcast::error::RecvError::Lagged(_)) => Some(Turn::Any),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Limits;

    #[tokio::test]
    async fn a_slow_follower_learns_that_it_missed_some() {
        let appearances = Appearances::default();
        let key = |number: usize| Limits::default().service_key("", "", &format!("s{number}")).unwrap();
        appearances.tell(key(0));
        let mut follower = appearances.follow();
        appearances.tell(key(1));
        assert_eq!(follower.next().await, Some(Turn::Of(key(1))));
        for number in 0..=WAITING {
            appearances.tell(key(number));
        }
        assert_eq!(follower.next().await, Some(Turn::Any));
        drop(appearances);
        while follower.next().await.is_some() {}
    }
}
