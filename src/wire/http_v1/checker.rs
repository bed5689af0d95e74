//! Health checkers as JSON: how the instances of a cluster are probed.

use serde_json::{Map, Value, json};

use super::ParamError;
use crate::registry::service::Checker;

/// Reads a checker. One without a type, or of a type that is not known, is `NONE` (Nacos).
///
/// # Errors
/// [`ParamError::Json`] if it is no JSON object, or if a value in it is mistyped.
pub fn checker(text: &str) -> Result<Checker, ParamError> {
    let object: Map<String, Value> = serde_json::from_str(text).map_err(|error| bad(error.to_string()))?;
    let kind = object.get("type").and_then(Value::as_str).unwrap_or("");
    let is = |name: &str| kind.eq_ignore_ascii_case(name);
    if is("TCP") {
        Ok(Checker::Tcp)
    } else if is("HTTP") {
        Ok(Checker::Http {
            path: string(&object, "path")?,
            headers: string(&object, "headers")?,
            expected_status: status(&object)?,
        })
    } else if is("MYSQL") {
        Ok(Checker::Mysql {
            user: string(&object, "user")?,
            password: string(&object, "pwd")?,
            command: string(&object, "cmd")?,
        })
    } else {
        Ok(Checker::None)
    }
}

/// A checker as it is shown: without the password.
#[must_use]
pub fn checker_json(checker: &Checker) -> Value {
    match checker {
        Checker::Tcp => json!({"type": "TCP"}),
        Checker::Http { path, headers, expected_status } => {
            json!({"type": "HTTP", "path": path, "headers": headers, "expectedResponseCode": expected_status})
        }
        Checker::Mysql { user, password: _, command } => {
            json!({"type": "MYSQL", "user": user, "pwd": null, "cmd": command})
        }
        Checker::None => json!({"type": "NONE"}),
    }
}

/// Every checker with its defaults, as `/health/checkers` shows them.
#[must_use]
pub fn checkers_json() -> Value {
    json!({
        "TCP": {"type": "TCP"},
        "HTTP": {"type": "HTTP", "path": "", "headers": "", "expectedResponseCode": 200},
        "MYSQL": {"type": "MYSQL", "user": null, "pwd": null, "cmd": null},
        "NONE": {"type": "NONE"},
    })
}

fn string(object: &Map<String, Value>, key: &str) -> Result<String, ParamError> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(bad(format!("its {key} is no text"))),
    }
}

fn status(object: &Map<String, Value>) -> Result<u16, ParamError> {
    let number = match object.get("expectedResponseCode") {
        None | Some(Value::Null) => return Ok(200),
        Some(Value::String(text)) => text.trim().parse().ok(),
        Some(other) => other.as_u64(),
    };
    number
        .and_then(|number| u16::try_from(number).ok())
        .filter(|status| (100..=599).contains(status))
        .ok_or_else(|| bad("its expectedResponseCode is no whole number from 100 to 599".to_owned()))
}

fn bad(problem: String) -> ParamError {
    ParamError::Json { name: "healthChecker", allowed: "a JSON object that describes a health checker", problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkers_are_read_and_shown() {
        for (text, shown) in [
            (r#"{"type":"TCP"}"#, json!({"type": "TCP"})),
            (
                r#"{"type":"HTTP","path":"/health","headers":"K:V|K2:V2","expectedResponseCode":"204"}"#,
                json!({"type": "HTTP", "path": "/health", "headers": "K:V|K2:V2", "expectedResponseCode": 204}),
            ),
            (
                r#"{"type":"MYSQL","user":"u","pwd":"secret","cmd":"select 1"}"#,
                json!({"type": "MYSQL", "user": "u", "pwd": null, "cmd": "select 1"}),
            ),
            (r#"{"type":"NONE"}"#, json!({"type": "NONE"})),
            ("{}", json!({"type": "NONE"})),
            (r#"{"type":"PING"}"#, json!({"type": "NONE"})),
        ] {
            assert_eq!(checker_json(&checker(text).unwrap()), shown, "{text}");
        }
    }

    #[test]
    fn what_is_no_checker_is_refused() {
        for text in
            ["", "TCP", "[]", r#"{"type":"HTTP","path":1}"#, r#"{"type":"HTTP","expectedResponseCode":99}"#, "null"]
        {
            let error = checker(text).unwrap_err().to_string();
            assert!(error.starts_with("Param 'healthChecker' is illegal"), "{error}");
        }
    }
}
