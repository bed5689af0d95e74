//! `/v1/ns/cluster`: how the instances of a cluster are probed.

use axum::{extract::State, response::Response};

use super::instance::metadata;
use crate::{
    api::{
        self,
        http::{
            call::{Call, Names, ok},
            refusal::Refusal,
        },
    },
    naming,
    registry::{self, service::ClusterSettings},
    wire::http_v1::{ParamError, checker},
};

/// PUT: sets a cluster of a service up; metadata that are not sent are reset (Nacos). The service stays from now on when its
/// last instance leaves.
pub async fn update(State(state): State<api::http::State>, call: Call) -> Result<Response, Refusal> {
    let params = call.params()?;
    let limits = state.naming.limits();
    let service = params.service(limits)?;
    let cluster = limits.cluster(params.required("clusterName")?)?.ok_or(ParamError::Missing("clusterName"))?;
    let settings = ClusterSettings {
        check_port: params.required_whole("checkPort", 0..=u16::MAX)?,
        use_instance_port: params
            .boolean("useInstancePort4Check")?
            .ok_or(ParamError::Missing("useInstancePort4Check"))?,
        checker: checker(params.required("healthChecker")?)?,
        metadata: metadata(&params, limits)?.unwrap_or_default(),
    };
    match state.naming.set_cluster(service, cluster, settings).await {
        Ok(_) => Ok(ok()),
        Err(naming::Error::Registry(registry::Error::ServiceUnknown(key))) => {
            Err(Refusal::bad(format!("service not found:{key}")))
        }
        Err(error) => Err(error.into()),
    }
}
