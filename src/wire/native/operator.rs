//! Switches.

use std::time::Duration;

use prost_types::FieldMask;

use super::{DecodeError, duration, instance::kind, instance::kind_number, millis};
use crate::{
    registry::{
        publication::Kind,
        switches::{SwitchChange, Switches},
    },
    wire::pb,
};

const DAY: u64 = 86_400_000;

/// The switches that the native API knows, as a message.
#[must_use]
pub fn switches(switches: &Switches) -> pb::Switches {
    let period = |millis| Some(duration(Duration::from_millis(millis)));
    pb::Switches {
        client_beat_interval: period(switches.client_beat_interval),
        default_cache_interval: period(switches.cache_millis),
        push_cache_interval: period(switches.push_cache_millis),
        health_check_enabled: switches.health_check_enabled,
        push_enabled: switches.push_enabled,
        light_beat_enabled: switches.light_beat_enabled,
        default_instance_kind: kind_number(if switches.default_instance_ephemeral {
            Kind::Ephemeral
        } else {
            Kind::Persistent
        }),
    }
}

/// The changes of switches that a request asks for.
///
/// # Errors
/// [`DecodeError`] for the first part that is refused; nothing of the request is to be carried out then.
pub fn changes(request: pb::UpdateSwitchesRequest) -> Result<Vec<SwitchChange>, DecodeError> {
    let new = request.switches.ok_or(DecodeError::Missing { field: "switches" })?;
    let allowed = [
        "client_beat_interval",
        "default_cache_interval",
        "push_cache_interval",
        "health_check_enabled",
        "push_enabled",
        "light_beat_enabled",
        "default_instance_kind",
    ];
    let mask: Option<&FieldMask> = request.update_mask.as_ref();
    let [beat, cache, push_cache, health, push, light, default_kind] = super::changed(mask, allowed, [false; 7])?;
    let mut changes = Vec::new();
    if beat {
        let field = "switches.client_beat_interval";
        let millis = period(field, new.client_beat_interval, 1, "1 ms to 1 day")?;
        changes.push(SwitchChange::ClientBeatInterval(millis));
    }
    if cache {
        let field = "switches.default_cache_interval";
        changes.push(SwitchChange::CacheMillis(period(field, new.default_cache_interval, 1_000, "1 s to 1 day")?));
    }
    if push_cache {
        let field = "switches.push_cache_interval";
        let millis = period(field, new.push_cache_interval, 10_000, "10 s to 1 day")?;
        changes.push(SwitchChange::PushCacheMillis(millis));
    }
    if health {
        changes.push(SwitchChange::HealthCheckEnabled(new.health_check_enabled));
    }
    if push {
        changes.push(SwitchChange::PushEnabled(new.push_enabled));
    }
    if light {
        changes.push(SwitchChange::LightBeatEnabled(new.light_beat_enabled));
    }
    if default_kind {
        let kind = kind("switches.default_instance_kind", new.default_instance_kind)?.unwrap_or_default();
        changes.push(SwitchChange::DefaultInstanceEphemeral(kind == Kind::Ephemeral));
    }
    Ok(changes)
}

/// Milliseconds from `least` to a day.
fn period(
    field: &'static str,
    period: Option<prost_types::Duration>,
    least: u64,
    allowed: &'static str,
) -> Result<u64, DecodeError> {
    let millis = millis(field, period.ok_or(DecodeError::Missing { field })?)?;
    if (least..=DAY).contains(&millis) {
        return Ok(millis);
    }
    Err(DecodeError::Range { field, value: i64::try_from(millis).unwrap_or(i64::MAX), allowed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Classify;

    fn request(switches: pb::Switches, paths: &[&str]) -> pb::UpdateSwitchesRequest {
        let paths = paths.iter().map(|&path| path.to_owned()).collect();
        pb::UpdateSwitchesRequest { switches: Some(switches), update_mask: Some(FieldMask { paths }) }
    }

    #[test]
    fn a_change_of_all_gives_what_was_sent() {
        let mut sent = switches(&Switches::default());
        sent.client_beat_interval = Some(prost_types::Duration { seconds: 7, nanos: 0 });
        sent.push_enabled = false;
        sent.default_instance_kind = pb::InstanceKind::Persistent.into();
        let changes = changes(request(sent, &["*"])).unwrap();
        assert_eq!(switches(&changes.into_iter().fold(Switches::default(), Switches::with)), sent);
    }

    #[test]
    fn only_what_the_mask_names_changes_and_must_fit() {
        let off = pb::Switches::default();
        assert_eq!(changes(request(off, &["push_enabled"])), Ok(vec![SwitchChange::PushEnabled(false)]));
        assert_eq!(changes(request(off, &[])).unwrap_err().field(), Some("update_mask"));
        let error = changes(request(off, &["client_beat_interval"])).unwrap_err();
        assert_eq!(error.field(), Some("switches.client_beat_interval"));
        let short = pb::Switches { push_cache_interval: Some(prost_types::Duration { seconds: 9, nanos: 0 }), ..off };
        let error = changes(request(short, &["push_cache_interval"])).unwrap_err();
        assert_eq!(error.to_string(), "switches.push_cache_interval is 9000; allowed are 10 s to 1 day");
    }
}
