//! `/v1/console` and `/v1/auth`, through the real binary.

mod support;

use serde_json::{Value, json};
use support::{
    http::{Answer, Call},
    server::Server,
};

fn namespaces(server: &Server, method: &str) -> Call {
    server.call(method, "/nacos/v1/console/namespaces")
}

fn create(server: &Server, id: &str, name: &str) -> Answer {
    namespaces(server, "POST")
        .params(&[("customNamespaceId", id), ("namespaceName", name), ("namespaceDesc", "d")])
        .send()
}

fn list(server: &Server) -> Value {
    let answer = namespaces(server, "GET").send().json();
    assert_eq!((&answer["code"], &answer["message"]), (&json!(200), &json!(null)));
    answer["data"].clone()
}

fn public() -> Value {
    json!({
        "namespace": "", "namespaceShowName": "public", "namespaceDesc": "Default Namespace", "quota": 200,
        "configCount": 0, "type": 0
    })
}

fn custom(id: &str, name: &str, description: &str) -> Value {
    json!({
        "namespace": id, "namespaceShowName": name, "namespaceDesc": description, "quota": 200, "configCount": 0,
        "type": 2
    })
}

#[test]
fn namespaces_are_created_shown_changed_and_deleted() {
    let server = Server::start();
    assert_eq!(list(&server), json!([public()]));
    assert_eq!(create(&server, "dev", "<b>dev</b>").json(), json!(true));
    assert_eq!(create(&server, "dev", "again").json(), json!(false));
    assert_eq!(list(&server), json!([public(), custom("dev", "<b>dev</b>", "d")]));
    let all = |id: &str| namespaces(&server, "GET").params(&[("show", "all"), ("namespaceId", id)]).send();
    assert_eq!(all("dev").json(), custom("dev", "<b>dev</b>", "d"));
    assert_eq!(all("").json(), public());
    let unknown = all("nope");
    assert_eq!((unknown.status, unknown.text()), (404, "namespaceId [ nope ] not exist"));
    let exists = |id: &str| {
        namespaces(&server, "GET").params(&[("checkNamespaceIdExist", "true"), ("customNamespaceId", id)]).send().json()
    };
    assert_eq!(
        (exists("dev"), exists("nope"), exists(""), exists("a b")),
        (json!(true), json!(false), json!(false), json!(false))
    );
    let update = |id: &str| {
        let params = [("namespace", id), ("namespaceShowName", "Dev"), ("namespaceDesc", "for developers")];
        namespaces(&server, "PUT").form(&params).send()
    };
    assert_eq!((update("dev").json(), update("nope").json()), (json!(true), json!(true)));
    assert_eq!(list(&server), json!([public(), custom("dev", "Dev", "for developers")]));

    server.register("s", "10.0.0.1", 80, &[("namespaceId", "dev")]);
    let delete = |id: &str| namespaces(&server, "DELETE").param("namespaceId", id).send();
    assert_eq!((delete("dev").json(), delete("nope").json()), (json!(true), json!(true)));
    assert_eq!(list(&server), json!([public()]));
    assert_eq!(server.ports("s", &[("namespaceId", "dev")]), [80]);
    delete("public").refused(&["public"]);
    update("").refused(&["public"]);
}

#[test]
fn a_namespace_without_an_id_gets_one_and_bad_ones_are_not_made() {
    let server = Server::start();
    assert_eq!(create(&server, "", "mine").json(), json!(true));
    let made = list(&server);
    let id = made[1]["namespace"].as_str().unwrap();
    assert_eq!((id.len(), id.matches('-').count()), (36, 4));
    assert_eq!(made[1]["namespaceShowName"], "mine");
    for (id, name) in [("a b", "n"), ("a@b", "n"), ("public", "n"), ("x", "a@b"), ("x", "50%"), (&"i".repeat(129), "n")]
    {
        assert_eq!(create(&server, id, name).json(), json!(false), "{id} {name}");
    }
    let post = |more: &[(&str, &str)]| namespaces(&server, "POST").params(more).send();
    post(&[("namespaceName", "n")]).refused(&["Parameter 'customNamespaceId' is missing"]);
    post(&[("customNamespaceId", "x")]).refused(&["Parameter 'namespaceName' is missing"]);
    create(&server, "x", &"n".repeat(129)).refused(&["namespaceName", "128", "129"]);
    namespaces(&server, "DELETE").send().refused(&["Parameter 'namespaceId' is missing"]);
    namespaces(&server, "PUT").param("namespace", "x").send().refused(&["Parameter 'namespaceShowName' is missing"]);
    assert_eq!(list(&server), made);
}

#[test]
fn the_console_tells_state_and_health() {
    let server = Server::start();
    let get = |path: &str| server.call("GET", &format!("/nacos/v1/console{path}")).send();
    let state = get("/server/state").json();
    assert_eq!(
        (&state["standalone_mode"], &state["function_mode"], &state["version"]),
        (&json!("standalone"), &json!("naming"), &json!(env!("CARGO_PKG_VERSION")))
    );
    assert!(state.as_object().unwrap().values().all(|value| value.is_string() || value.is_null()));
    for path in ["/health/liveness", "/health/readiness", "/health/liveness/"] {
        let answer = get(path);
        assert_eq!((answer.status, answer.text()), (200, "OK"));
        assert_eq!(answer.header("content-type"), Some("text/plain;charset=UTF-8"));
    }
    for path in ["/server/announcement", "/server/guide"] {
        assert_eq!(get(path).json(), json!({"code": 200, "message": null, "data": null}));
    }
    assert_eq!(server.call("POST", "/nacos/v1/console/server/state").send().status, 501);
}

#[test]
fn whoever_has_credentials_can_sign_in() {
    let server = Server::start();
    let mut tokens = Vec::new();
    for path in ["/nacos/v1/auth/login", "/nacos/v1/auth/users/login"] {
        let login = server.call("POST", path).param("username", "na'cos").raw_form(b"password=nacos&").send();
        let answer = login.json();
        assert_eq!(
            (&answer["tokenTtl"], &answer["globalAdmin"], &answer["username"]),
            (&json!(18_000), &json!(true), &json!("na'cos"))
        );
        let token = answer["accessToken"].as_str().unwrap().to_owned();
        assert_eq!(login.header("authorization"), Some(format!("Bearer {token}").as_str()));
        assert_eq!(token.len(), 64);
        server.register("s", "10.0.0.1", 80, &[("accessToken", &token)]);
        tokens.push(token);
    }
    let both = [("username", "u"), ("password", "p")];
    tokens.push(server.call("POST", "/nacos/v1/auth/login").params(&both).send().json()["accessToken"].to_string());
    assert!(tokens[0] != tokens[1] && tokens[1] != tokens[2]);
    server.call("POST", "/nacos/v1/auth/login").send().refused(&["Parameter 'username' is missing"]);
    for path in ["/nacos/v1/auth/users", "/nacos/v1/auth/roles"] {
        assert_eq!(server.call("GET", path).send().status, 501);
    }
}

#[test]
fn a_browser_gets_an_error_page_that_runs_nothing() {
    let server = Server::start();
    let answer = server.call("GET", "/nacos/a'&b").header("Accept", "text/html,*/*").send();
    assert_eq!(answer.status, 501);
    assert_eq!(answer.header("content-type"), Some("text/html;charset=UTF-8"));
    assert!(answer.text().contains("no such api:GET:/nacos/a&#39;&amp;b"), "{answer:?}");
    let answer = server.call("GET", "/nacos/none").send();
    let page: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!((&page["message"], &page["path"]), (&json!("no such api:GET:/nacos/none"), &json!("/nacos/none")));
    assert!(page["timestamp"].as_str().unwrap().contains('T'));
}
