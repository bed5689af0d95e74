//! `/v1/ns/instance/beat`: publishers say that they are alive.

use axum::{extract::State, response::Response};
use serde_json::{Map, Value, json};

use crate::{
    api::{
        self,
        http::{
            call::{Call, Names, json_bytes},
            refusal::Refusal,
        },
    },
    naming::BeatResult,
    registry::{Limits, Publication, Target, Weight, key::excerpt},
    wire::http_v1::{ParamError, Params},
};

/// The code of a beat that found its instance.
const RENEWED: u16 = 10_200;
/// The code of a beat whose instance is unknown: the client must register it again.
const UNKNOWN: u16 = 20_404;

/// PUT: a light beat names the instance, a full one (`beat`, JSON) describes it too. Of the two the JSON says address and
/// port (Nacos), the request says the cluster; and a beat never moves or changes a live instance.
pub async fn beat(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let params = call.params()?;
    let limits = state.naming.limits();
    let service = params.service(limits)?;
    let (target, publication) = match params.text("beat") {
        Some(text) => {
            let beat: Map<String, Value> = serde_json::from_str(text).map_err(|error| bad_beat(error.to_string()))?;
            (full_target(&params, &beat, limits)?, Some(publication(&beat, limits)?))
        }
        None => (params.target(limits)?, None),
    };
    let beat = state.naming.beat(service, &target, publication).await?;
    let code = match beat.result {
        BeatResult::Renewed(_) | BeatResult::Registered(_) => RENEWED,
        BeatResult::Unknown => UNKNOWN,
    };
    let interval = beat.interval.as_millis();
    let light = beat.light;
    Ok(json_bytes(format!("{{\"clientBeatInterval\":{interval},\"code\":{code},\"lightBeatEnabled\":{light}}}")))
}

fn full_target(params: &Params<'_>, beat: &Map<String, Value>, limits: &Limits) -> Result<Target, Refusal> {
    let address = match text(beat, "ip")?.or_else(|| params.text("ip")) {
        Some(address) => address,
        None => return Err(ParamError::Missing("ip").into()),
    };
    let port = match beat.get("port") {
        None | Some(Value::Null) => params.required_whole("port", 0..=65_535_i64)?,
        Some(given) => {
            let number = match given {
                Value::String(text) => text.trim().parse().ok(),
                other => other.as_i64(),
            };
            number.ok_or_else(|| bad_beat(format!("its port is {}", excerpt(&given.to_string()))))?
        }
    };
    let named = match params.cluster(limits)? {
        Some(cluster) => Some(cluster),
        None => limits.cluster(text(beat, "cluster")?.unwrap_or(""))?,
    };
    Ok(Target { endpoint: limits.endpoint(address, port)?, cluster: named })
}

/// What a full beat says of its instance. A beat without a weight says 1, as a registration without one does.
fn publication(beat: &Map<String, Value>, limits: &Limits) -> Result<Publication, Refusal> {
    let weight = match beat.get("weight") {
        None | Some(Value::Null) => Weight::default(),
        Some(Value::Number(weight)) => Weight::new(weight.as_f64().unwrap_or(f64::NAN))?,
        Some(other) => return Err(bad_beat(format!("its weight is {}", excerpt(&other.to_string())))),
    };
    let metadata = match beat.get("metadata") {
        None | Some(Value::Null) => Vec::new(),
        Some(object @ Value::Object(_)) => crate::wire::http_v1::metadata_pairs(&object.to_string())?,
        Some(other) => return Err(bad_beat(format!("its metadata is {}", excerpt(&other.to_string())))),
    };
    Ok(Publication { weight, metadata: limits.metadata(metadata)?, ..Publication::default() })
}

fn text<'a>(beat: &'a Map<String, Value>, key: &str) -> Result<Option<&'a str>, Refusal> {
    match beat.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.trim()).filter(|text| !text.is_empty())),
        Some(other) => Err(bad_beat(format!("its {key} is {}", excerpt(&json!(other).to_string())))),
    }
}

fn bad_beat(problem: String) -> Refusal {
    ParamError::Json { name: "beat", allowed: "a JSON object that describes an instance", problem }.into()
}
