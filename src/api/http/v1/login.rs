//! `/v1/auth/login` and `/v1/auth/users/login`: clients with credentials sign in even where nobody has to.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header};
use serde_json::json;
use uuid::Uuid;

use crate::{
    api::http::{
        call::{Call, json},
        refusal::Refusal,
    },
    registry::key::excerpt,
};

/// Seconds after which a client should sign in again (Nacos).
const TOKEN_TTL: u32 = 18_000;

/// POST: answers with a token. Authentication is off in this version: the password is not looked at, and the token is a
/// random text of constant length that is kept nowhere and grants nothing.
pub async fn login(call: Call) -> Result<Response, Refusal> {
    let params = call.params()?;
    let username = excerpt(params.declared("username")?);
    let token = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
    let bearer = HeaderValue::from_str(&format!("Bearer {token}"));
    let body = json(&json!({
        "accessToken": token,
        "tokenTtl": TOKEN_TTL,
        "globalAdmin": true,
        "username": username,
    }));
    Ok(match bearer {
        Ok(bearer) => ([(header::AUTHORIZATION, bearer)], body).into_response(),
        Err(_) => body,
    })
}
