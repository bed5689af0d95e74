//! What Prometheus scrapes of the cluster, as this node sees it. Names of members are labels: a list has at most 256, and
//! one that leaves it takes its series along.

use std::{fmt, time::Duration};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};

use super::{counter, gauge, labelled, size};
use crate::naming::{ClusterView, Forwarding, LinkView, MemberView, MovedView, Naming, Roster, Stage, Standing};

/// The figures of the cluster. All are read when they are scraped.
#[derive(Debug)]
pub(super) struct Figures {
    pub(super) roster: Roster,
    pub(super) naming: Naming,
}

impl Collector for Figures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        encode(&self.roster.view(), &mut encoder)?;
        forwards(self.naming.forwarding().unwrap_or_default(), &mut encoder)
    }
}

fn encode(view: &ClusterView, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    own(view, encoder)?;
    members(view, encoder)?;
    links(view, encoder)?;
    copies(view, encoder)?;
    let records: u64 = view.orphans.iter().map(|orphan| orphan.records).sum();
    gauge(encoder, "nomina_cluster_orphans", "Former incarnations of members whose records stay", view.orphans.len())?;
    let help = "Records of members that are gone";
    gauge(encoder, "nomina_cluster_orphan_records", help, usize::try_from(records).unwrap_or(usize::MAX))?;
    let MovedView { taken_over, handed_over, forgotten } = view.moved;
    for (name, help, value) in [
        ("takeovers", "Beat-kept records taken over from members that are gone", taken_over),
        ("handovers", "Beat-kept records handed to their new owner", handed_over),
        ("forgotten", "Records of members that were gone for too long", forgotten),
    ] {
        counter(encoder, &format!("nomina_cluster_{name}"), help, value)?;
    }
    Ok(())
}

fn forwards(figures: Forwarding, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let (name, help) = ("nomina_cluster_forwards", "Writes and beats for other members, by what came of them");
    let mut outcomes = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (outcome, value) in [("answered", figures.answered), ("failed", figures.failed), ("batched", figures.batched)] {
        ConstCounter::new(value).encode(outcomes.encode_family(&[("outcome", outcome)])?)?;
    }
    let help = "Beats that wait to be told to their owners";
    gauge(encoder, "nomina_cluster_forwards_waiting", help, figures.waiting)
}

/// This node itself.
fn own(view: &ClusterView, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let help = "1 for the stage of its life in which this node is";
    let mut stages = family(encoder, "nomina_cluster_stage", help)?;
    for (name, stage) in [("joining", Stage::Joining), ("ready", Stage::Ready), ("draining", Stage::Draining)] {
        labelled(&mut stages, &[("stage", name)], i64::from(view.stage == stage))?;
    }
    for (name, help, value) in [
        ("listed", "1 while the list of members names this node", usize::from(view.listed)),
        ("majority", "1 while at least half of the members are up, this node included", usize::from(view.majority)),
        ("epoch", "The epoch of this node, 0 without a cluster", usize::try_from(view.epoch).unwrap_or(usize::MAX)),
        ("waiting_for", "Members whose records this node waits for before it serves", view.waiting_for.len()),
    ] {
        gauge(encoder, &format!("nomina_cluster_{name}"), help, value)?;
    }
    Ok(())
}

fn members(view: &ClusterView, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let mut standings = family(encoder, "nomina_cluster_members", "Members by how they stand, this node included")?;
    for (name, standing) in [
        ("up", Standing::Up),
        ("suspect", Standing::Suspect),
        ("unreachable", Standing::Unreachable),
        ("dead", Standing::Dead),
        ("departed", Standing::Departed),
    ] {
        let count = view.members.iter().filter(|member| member.standing == standing).count();
        labelled(&mut standings, &[("standing", name)], size(count))?;
    }
    let mut shares =
        family(encoder, "nomina_cluster_ownership_share", "How much of all beat sources a member owns, 0 to 1")?;
    for MemberView { name, share, .. } in &view.members {
        ConstGauge::new(*share).encode(shares.encode_family(&[("member", name.as_str())])?)?;
    }
    Ok(())
}

/// What this node tells the others.
fn links(view: &ClusterView, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    type Value = fn(&LinkView) -> Option<i64>;
    let gauges: [(&str, &str, Value); 4] = [
        ("nomina_cluster_linked", "1 while the link to a member stands", |link| Some(i64::from(link.up_for.is_some()))),
        ("nomina_cluster_outbox_length", "Changed records that a member has not acknowledged", |link| {
            Some(size(link.outbox))
        }),
        ("nomina_cluster_replication_lag_ms", "For how long the oldest of them has been due", |link| {
            Some(millis(link.lag.unwrap_or_default()))
        }),
        (
            "nomina_cluster_digests_agree",
            "1 if a member's copy of this node's records was equal to them when last compared",
            |link| link.agreement.map(|agreement| i64::from(agreement.equal)),
        ),
    ];
    for (name, help, value) in gauges {
        let mut family = family(encoder, name, help)?;
        for (member, link) in linked(view) {
            if let Some(value) = value(link) {
                labelled(&mut family, &[("member", member)], value)?;
            }
        }
    }
    let help = "Batches of records that a member has acknowledged";
    let name = "nomina_cluster_batches_acknowledged";
    let mut batches = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (member, link) in linked(view) {
        ConstCounter::new(link.batches).encode(batches.encode_family(&[("member", member)])?)?;
    }
    Ok(())
}

fn linked(view: &ClusterView) -> impl Iterator<Item = (&str, &LinkView)> {
    view.members.iter().filter_map(|member| Some((member.name.as_str(), member.link.as_ref()?)))
}

/// What this node holds.
fn copies(view: &ClusterView, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let mut records =
        family(encoder, "nomina_cluster_records", "Records that this node holds, by the member that owns them")?;
    for MemberView { name, copy, .. } in &view.members {
        labelled(&mut records, &[("member", name)], i64::try_from(copy.records).unwrap_or(i64::MAX))?;
    }
    let help = "1 if this node's copy of a member's records was equal to them when last compared";
    let mut agree = family(encoder, "nomina_cluster_copies_agree", help)?;
    for MemberView { name, copy, .. } in &view.members {
        if let Some(agreement) = copy.agreement {
            labelled(&mut agree, &[("member", name)], i64::from(agreement.equal))?;
        }
    }
    Ok(())
}

fn family<'a>(
    encoder: &'a mut DescriptorEncoder<'_>,
    name: &'a str,
    help: &str,
) -> Result<MetricEncoder<'a>, fmt::Error> {
    encoder.encode_descriptor(name, help, None, MetricType::Gauge)
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
