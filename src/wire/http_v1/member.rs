//! The nodes of a cluster as `/core/cluster` and `/operator/servers` show them.

use serde_json::{Value, json};

/// What is shown of a node.
#[derive(Debug, Clone, Copy)]
pub struct Member<'a> {
    /// Its name, `host:port`.
    pub name: &'a str,
    /// `STARTING`, `UP`, `SUSPICIOUS`, `DOWN` or `ISOLATION`.
    pub state: &'a str,
    /// The version of its program, if it is known.
    pub version: Option<&'a str>,
    /// Wall time at which it was last heard of, in milliseconds.
    pub heard_at: u64,
}

/// A node with every key that tools read.
#[must_use]
pub fn member_json(member: &Member<'_>) -> Value {
    let (host, port) = member.name.rsplit_once(':').unwrap_or((member.name, ""));
    let mut info = json!({
        "site": "unknow",
        "adWeight": "0",
        "weight": "1",
        "lastRefreshTime": member.heard_at,
    });
    if let (Value::Object(info), Some(version)) = (&mut info, member.version) {
        info.insert("version".to_owned(), json!(version));
    }
    json!({
        "ip": host,
        "port": port.parse::<u16>().unwrap_or(0),
        "state": member.state,
        "address": member.name,
        "failAccessCnt": 0,
        "extendInfo": info,
    })
}

/// The wrapping of `/core` and `/console` answers.
#[must_use]
pub fn envelope(data: &Value) -> Value {
    json!({"code": 200, "message": null, "data": data})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_taken_apart() {
        let shown = |name| member_json(&Member { name, state: "UP", version: Some("1.2.3"), heard_at: 7 });
        assert_eq!(
            shown("10.0.0.1:8848"),
            json!({
                "ip": "10.0.0.1", "port": 8848, "state": "UP", "address": "10.0.0.1:8848", "failAccessCnt": 0,
                "extendInfo": {"site": "unknow", "adWeight": "0", "weight": "1", "version": "1.2.3", "lastRefreshTime": 7}
            })
        );
        assert_eq!(shown("[::1]:80").get("ip"), Some(&json!("[::1]")));
        assert_eq!(shown("nomina-0.nomina:8848").get("ip"), Some(&json!("nomina-0.nomina")));
    }
}
