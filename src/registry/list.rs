//! The instances of a service: a persistent sorted list that costs little to copy with one change.
//!
//! Small services are one flat run, two instances without an allocation of their own. Past 128 instances the list
//! is a run of shared chunks, so that a change copies one chunk and the pointers to the others: in a service of 10,000
//! about 130 pointers instead of 10,000.

use std::{cmp::Ordering, sync::Arc};

use smallvec::SmallVec;

use super::{
    instance::Instance,
    key::{ClusterName, Endpoint, InstanceKey, Target},
};

/// The most instances of one chunk: a change copies at most this many pointers of instances. Half as many would double
/// the pointers to chunks of a large service, twice as many the cost of a change in a small one.
const CHUNK: usize = 128;

type Chunk = Vec<Arc<Instance>>;

/// Instances by ascending address, port and cluster.
#[derive(Debug, Clone)]
pub struct InstanceList(Repr);

#[derive(Debug, Clone)]
enum Repr {
    Flat(SmallVec<[Arc<Instance>; 2]>),
    Chunked { chunks: Vec<Arc<Chunk>>, length: usize },
}

impl Default for InstanceList {
    fn default() -> Self {
        Self(Repr::Flat(SmallVec::new()))
    }
}

/// A request without a cluster fits several instances.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{endpoint} is in several clusters ({}); the request must name one",
    clusters.iter().map(ClusterName::as_str).collect::<Vec<_>>().join(", ")
)]
pub struct Ambiguous {
    /// The endpoint that the request names.
    pub endpoint: Endpoint,
    /// The clusters that hold it.
    pub clusters: Vec<ClusterName>,
}

impl InstanceList {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Flat(run) => run.len(),
            Repr::Chunked { length, .. } => *length,
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Instance>> {
        let (flat, chunks) = match &self.0 {
            Repr::Flat(run) => (run.as_slice(), &[][..]),
            Repr::Chunked { chunks, .. } => (&[][..], chunks.as_slice()),
        };
        flat.iter().chain(chunks.iter().flat_map(|chunk| chunk.iter()))
    }

    /// The instance of `key`. Cost: a binary search.
    #[must_use]
    pub fn find(&self, key: &InstanceKey) -> Option<&Arc<Instance>> {
        let run = self.run_for(key);
        let position = run.binary_search_by(|instance| order(instance, key)).ok()?;
        run.get(position)
    }

    /// The instance that `target` means: with a cluster the one of that cluster; without, the one in `DEFAULT`, else the
    /// only one of that endpoint.
    ///
    /// # Errors
    /// [`Ambiguous`] if the target names no cluster, `DEFAULT` does not hold it and several others do.
    pub fn resolve<'a>(&'a self, target: &Target) -> Result<Option<&'a Arc<Instance>>, Ambiguous> {
        let key =
            InstanceKey { endpoint: target.endpoint.clone(), cluster: target.cluster.clone().unwrap_or_default() };
        let named = self.find(&key);
        if named.is_some() || target.cluster.is_some() {
            return Ok(named);
        }
        let mut found = self
            .beginning_at(&target.endpoint)
            .take_while(|i| *i.address() == target.endpoint.address && i.port() == target.endpoint.port);
        let first = found.next();
        let Some(second) = found.next() else { return Ok(first) };
        let clusters = first.into_iter().chain([second]).chain(found).map(|i| i.cluster().clone()).collect();
        Err(Ambiguous { endpoint: target.endpoint.clone(), clusters })
    }

    /// Puts `instance` in its place; returns the one of the same key that it replaces.
    pub fn insert(&mut self, instance: Arc<Instance>) -> Option<Arc<Instance>> {
        let key = instance.key();
        match &mut self.0 {
            Repr::Flat(run) => {
                match run.binary_search_by(|other| order(other, &key)) {
                    Ok(position) => return run.get_mut(position).map(|slot| std::mem::replace(slot, instance)),
                    Err(position) => run.insert(position, instance),
                }
                if run.len() > CHUNK {
                    let length = run.len();
                    let chunks = run.chunks(length.div_ceil(2)).map(|half| Arc::new(half.to_vec())).collect();
                    self.0 = Repr::Chunked { chunks, length };
                }
                None
            }
            Repr::Chunked { chunks, length } => {
                let at = chunk_for(chunks, &key);
                let shared = chunks.get_mut(at)?;
                let chunk = Arc::make_mut(shared);
                match chunk.binary_search_by(|other| order(other, &key)) {
                    Ok(position) => return chunk.get_mut(position).map(|slot| std::mem::replace(slot, instance)),
                    Err(position) => chunk.insert(position, instance),
                }
                *length += 1;
                if chunk.len() > CHUNK {
                    let upper = Arc::new(chunk.split_off(chunk.len() / 2));
                    chunk.shrink_to_fit();
                    chunks.insert(at + 1, upper);
                }
                None
            }
        }
    }

    /// Takes the instance of `key` out and returns it.
    pub fn remove(&mut self, key: &InstanceKey) -> Option<Arc<Instance>> {
        match &mut self.0 {
            Repr::Flat(run) => {
                let position = run.binary_search_by(|other| order(other, key)).ok()?;
                let removed = run.remove(position);
                run.shrink_to_fit();
                Some(removed)
            }
            Repr::Chunked { chunks, length } => {
                let at = chunk_for(chunks, key);
                let shared = chunks.get_mut(at)?;
                let position = shared.binary_search_by(|other| order(other, key)).ok()?;
                let chunk = Arc::make_mut(shared);
                let removed = chunk.remove(position);
                *length -= 1;
                merge_small(chunks, at);
                if *length <= CHUNK / 2 {
                    self.0 = Repr::Flat(self.iter().cloned().collect());
                }
                Some(removed)
            }
        }
    }

    /// Frees what growing left unused, before the list is published for long.
    pub fn shrink(&mut self) {
        match &mut self.0 {
            Repr::Flat(run) => run.shrink_to_fit(),
            Repr::Chunked { chunks, .. } => chunks.shrink_to_fit(),
        }
    }

    /// The run of instances in which `key` would stand.
    fn run_for(&self, key: &InstanceKey) -> &[Arc<Instance>] {
        match &self.0 {
            Repr::Flat(run) => run,
            Repr::Chunked { chunks, .. } => chunks.get(chunk_for(chunks, key)).map_or(&[], |chunk| chunk.as_slice()),
        }
    }

    /// All from the first one of `endpoint` on.
    fn beginning_at<'a, 'b>(&'a self, endpoint: &'b Endpoint) -> impl Iterator<Item = &'a Arc<Instance>> + use<'a, 'b> {
        let before = move |i: &Arc<Instance>| {
            i.address().cmp(&endpoint.address).then_with(|| i.port().cmp(&endpoint.port)) == Ordering::Less
        };
        let (flat, chunks) = match &self.0 {
            Repr::Flat(run) => (run.as_slice(), &[][..]),
            Repr::Chunked { chunks, .. } => {
                let first = chunks.partition_point(|chunk| chunk.last().is_some_and(before));
                (&[][..], chunks.get(first..).unwrap_or_default())
            }
        };
        flat.iter().chain(chunks.iter().flat_map(|chunk| chunk.iter())).skip_while(move |i| before(i))
    }
}

fn order(instance: &Instance, key: &InstanceKey) -> Ordering {
    key.cmp_parts(instance.address(), instance.port(), instance.cluster()).reverse()
}

/// The chunk in which `key` stands or would stand: the last one that does not begin after it.
fn chunk_for(chunks: &[Arc<Chunk>], key: &InstanceKey) -> usize {
    chunks
        .partition_point(|chunk| chunk.first().is_some_and(|first| order(first, key) != Ordering::Greater))
        .saturating_sub(1)
}

/// Joins the chunk at `at` with a neighbour once it has become small, so that chunks stay few.
fn merge_small(chunks: &mut Vec<Arc<Chunk>>, at: usize) {
    let length = |at: usize| chunks.get(at).map(|chunk| chunk.len());
    let Some(own) = length(at) else { return };
    if own >= CHUNK / 4 {
        return;
    }
    let (left, right) = if length(at + 1).is_some_and(|next| next + own <= CHUNK) {
        (at, at + 1)
    } else if at > 0 && length(at - 1).is_some_and(|previous| previous + own <= CHUNK) {
        (at - 1, at)
    } else {
        return;
    };
    let upper = chunks.remove(right);
    if let Some(lower) = chunks.get_mut(left) {
        Arc::make_mut(lower).extend(upper.iter().cloned());
    }
}

#[cfg(test)]
mod tests;
