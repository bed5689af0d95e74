//! Whole conversations, request by request as the SDKs of five languages send them.

use serde_json::json;

use super::support::{naming::code, server::Server};

/// nacos-client 1.4: everything in the query, the beat in a form; grouped names.
#[test]
fn java() {
    let server = Server::start();
    let java = |method: &str, path: &str| {
        server
            .ns(method, path)
            .header("User-Agent", "Nacos-Java-Client:v1.4.6")
            .header("Client-Version", "1.4.6")
            .header("Accept-Encoding", "gzip,deflate,sdch")
            .header("Connection", "Keep-Alive")
            .header("RequestId", "9d2c0b1e-0000-0000-0000-000000000000")
            .header("Request-Module", "Naming")
            .header("Content-Type", "application/x-www-form-urlencoded;charset=UTF-8")
            .raw_query("app=unknown&namespaceId=public&serviceName=g1%40%40demo")
    };
    let place = "ip=10.0.0.7&port=8080&clusterName=DEFAULT&ephemeral=true";
    let register = java("POST", "/instance").raw_query(place);
    let more = "groupName=g1&weight=2.0&enable=true&healthy=true&metadata=%7B%22zone%22%3A%22a%22%7D";
    register.raw_query(more).send().ok();
    let beat = "beat=%7B%22ip%22%3A%2210.0.0.7%22%2C%22port%22%3A8080%2C%22weight%22%3A2.0%2C%22serviceName%22%3A%22\
                g1%40%40demo%22%2C%22cluster%22%3A%22DEFAULT%22%2C%22metadata%22%3A%7B%22zone%22%3A%22a%22%7D%2C%22\
                scheduled%22%3Afalse%2C%22period%22%3A5000%2C%22stopped%22%3Afalse%7D&";
    let full = java("PUT", "/instance/beat").raw_query("clusterName=DEFAULT&ip=10.0.0.7&port=8080");
    let answer = full.raw_form(beat.as_bytes()).send().json();
    assert_eq!(answer, json!({"clientBeatInterval": 5000, "code": 10_200, "lightBeatEnabled": true}));
    let light = java("PUT", "/instance/beat").raw_query("clusterName=DEFAULT&ip=10.0.0.7&port=8080");
    assert_eq!(code(&light.send().json()), 10_200);
    let update = java("PUT", "/instance").raw_query(place);
    update.raw_query("groupName=g1&weight=0.0&enabled=true&metadata=%7B%7D").send().ok();
    let list = java("GET", "/instance/list").raw_query("clusters=&udpPort=0&clientIP=10.0.0.9&healthyOnly=false");
    let list = list.send().json();
    assert_eq!(list["name"], "g1@@demo");
    assert_eq!(list["hosts"][0]["weight"], 0.0);
    assert_eq!(list["hosts"][0]["serviceName"], "g1@@demo");
    java("DELETE", "/instance").raw_query(place).send().ok();
    assert_eq!(code(&light.send().json()), 20_404);
}

/// nacos-sdk-python: everything in the query, truth values in capitals, and the text `None` for no cluster, which its
/// beats and its removal then leave out.
#[test]
fn python() {
    let server = Server::start();
    let python = |method: &str, path: &str| server.ns(method, path).header("User-Agent", "Nacos-Python-Client:v1.0.0");
    let place = "ip=10.0.0.7&port=8080&serviceName=py&groupName=DEFAULT_GROUP";
    let register = python("POST", "/instance").raw_query(place);
    register.raw_query("weight=1.0&enable=True&healthy=True&clusterName=None&ephemeral=True&namespaceId=").send().ok();
    let beat = r#"{"serviceName": "py", "ip": "10.0.0.7", "port": "8080", "weight": 1.0, "ephemeral": true}"#;
    for _ in 0..3 {
        let answer = python("PUT", "/instance/beat").params(&[("serviceName", "py"), ("beat", beat)]);
        let answer = answer.raw_query("groupName=DEFAULT_GROUP").send().json();
        assert_eq!(code(&answer), 10_200);
    }
    assert_eq!(server.host("py", &[])["clusterName"], "None");
    python("PUT", "/instance").raw_query(place).raw_query("weight=3.0&enable=True&ephemeral=True").send().ok();
    let detail = python("GET", "/instance").raw_query("serviceName=py&ip=10.0.0.7&port=8080&healthyOnly=False");
    assert_eq!(detail.send().json()["weight"], 3.0);
    let list = python("GET", "/instance/list")
        .raw_query("serviceName=py&healthyOnly=False&namespaceId=&groupName=DEFAULT_GROUP");
    assert_eq!(list.send().json()["hosts"][0]["weight"], 3.0);
    let removed = python("DELETE", "/instance").raw_query(place).raw_query("ephemeral=True").send();
    assert_eq!(removed.body, b"ok");
    assert!(server.hosts("py", &[]).is_empty());
}

/// nacos-sdk-go over HTTP: an encoded form for POST, the query for GET and DELETE, a form without encoding for PUT.
#[test]
fn go() {
    let server = Server::start();
    let go = |method: &str, path: &str| {
        server
            .ns(method, path)
            .header("User-Agent", "Nacos-Go-Client:v2.3.5")
            .header("Client-Version", "Nacos-Go-Client:v2.3.5")
            .header("Request-Module", "Naming")
    };
    let form = "application/x-www-form-urlencoded";
    let register = "clusterName=&enable=true&ephemeral=true&groupName=DEFAULT_GROUP&healthy=true&ip=10.0.0.7&metadata=\
                    %7B%22idc%22%3A%22shanghai%22%7D&namespaceId=public&port=8080&serviceName=DEFAULT_GROUP%40%40go&weight=10";
    go("POST", "/instance").header("Content-Type", form).body(register.as_bytes()).send().ok();
    let beat = "namespaceId=public&serviceName=DEFAULT_GROUP@@go&beat={\"ip\":\"10.0.0.7\",\"port\":8080,\"weight\":10,\
                \"serviceName\":\"DEFAULT_GROUP@@go\",\"cluster\":\"\",\"metadata\":{\"idc\":\"shanghai\"},\"scheduled\":\
                false,\"period\":0,\"state\":0}";
    let answer = go("PUT", "/instance/beat").header("Content-Type", form).body(beat.as_bytes()).send().json();
    assert_eq!(answer["clientBeatInterval"], 5_000);
    assert_eq!(code(&answer), 10_200);
    let list = go("GET", "/instance/list").raw_query("namespaceId=public&serviceName=DEFAULT_GROUP%40%40go&clusters=&udpPort=0&clientIP=10.0.0.9&app=&healthyOnly=false");
    let hosts = list.send().json()["hosts"].clone();
    assert_eq!(hosts.as_array().unwrap().len(), 1);
    assert_eq!(hosts[0]["metadata"]["idc"], "shanghai");
    let place =
        "namespaceId=public&serviceName=DEFAULT_GROUP%40%40go&clusterName=&ip=10.0.0.7&port=8080&ephemeral=true";
    go("DELETE", "/instance").raw_query(place).send().ok();
    assert!(server.hosts("go", &[]).is_empty());
}

/// npm nacos-naming: calls itself Java, sends everything in the query with user and password on each call, and asks for
/// the cluster `DEFAULT` where none was named.
#[test]
fn npm() {
    let server = Server::start();
    let npm = |method: &str, path: &str| {
        let call = server.ns(method, path).header("User-Agent", "Nacos-Java-Client:v1.0.0");
        call.header("Content-Type", "application/x-www-form-urlencoded;charset=GBK").raw_query(
            "username=nacos&password=p%40ss&encoding=UTF-8&namespaceId=public&serviceName=DEFAULT_GROUP%40%40npm",
        )
    };
    let place = "clusterName=DEFAULT&ip=10.0.0.7&port=8080&ephemeral=true";
    let register = npm("POST", "/instance").raw_query(place);
    register.raw_query("groupName=DEFAULT_GROUP&weight=1&enable=true&healthy=true&metadata=%7B%7D").send().ok();
    let beat = r#"{"serviceName":"DEFAULT_GROUP@@npm","ip":"10.0.0.7","port":8080,"cluster":"DEFAULT","weight":1,"metadata":{},"scheduled":true}"#;
    assert_eq!(code(&npm("PUT", "/instance/beat").param("beat", beat).send().json()), 10_200);
    let list = npm("GET", "/instance/list").raw_query("clusters=DEFAULT&udpPort=0&clientIP=&healthyOnly=false");
    let list = list.send().json();
    assert_eq!((list["clusters"].as_str(), list["hosts"].as_array().unwrap().len()), (Some("DEFAULT"), 1));
    npm("DELETE", "/instance").raw_query(place).send().ok();
}
