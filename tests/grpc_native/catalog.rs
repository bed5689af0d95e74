//! Services, clusters, namespaces.

use nomina::wire::pb::{self, health_checker::Kind};
use tonic::Code;

use crate::{Native, assert_refused, in_cluster, instance, map, mask, service};

fn settings(threshold: f32) -> pb::ServiceSettings {
    pb::ServiceSettings {
        protect_threshold: Some(threshold),
        metadata: map(&[("owner", "x")]),
        selector: Some(pb::Selector {
            rule: Some(pb::selector::Rule::Label(pb::LabelSelector { labels: vec!["zone".into()] })),
        }),
    }
}

#[tokio::test]
async fn a_service_is_created_changed_and_deleted() {
    let mut native = Native::start().await;
    let create = pb::CreateServiceRequest { key: Some(service("s")), settings: Some(settings(0.25)) };
    let made = native.catalog.create_service(create.clone()).await.unwrap().into_inner().service.unwrap();
    assert_eq!(made.settings, Some(settings(0.25)));
    assert_eq!(made.key.clone().unwrap().group, "DEFAULT_GROUP");
    assert!(made.explicit && made.revision > 0 && made.clusters.is_empty());
    assert_refused(native.catalog.create_service(create).await, Code::AlreadyExists, "");

    let update = |settings, paths: &[&str]| pb::UpdateServiceRequest {
        key: Some(service("s")),
        settings: Some(settings),
        update_mask: mask(paths),
    };
    let new = pb::ServiceSettings { metadata: map(&[("owner", "y")]), ..Default::default() };
    let shown = native.catalog.update_service(update(new, &[])).await.unwrap().into_inner().service.unwrap();
    assert_eq!(shown.settings, Some(pb::ServiceSettings { metadata: map(&[("owner", "y")]), ..settings(0.25) }));
    let unset = update(Default::default(), &["protect_threshold", "selector"]);
    let shown = native.catalog.update_service(unset).await.unwrap().into_inner().service.unwrap();
    let left = shown.settings.unwrap();
    assert_eq!((left.protect_threshold, left.selector), (None, None));
    assert_eq!(left.metadata["owner"], "y");

    native.register(in_cluster("s", 1, "a"), Default::default()).await;
    let sick = pb::InstanceSpec { healthy: Some(false), ..Default::default() };
    native.register(in_cluster("s", 2, "b"), sick).await;
    let get = pb::GetServiceRequest { key: Some(service("s")) };
    let shown = native.catalog.get_service(get.clone()).await.unwrap().into_inner().service.unwrap();
    assert_eq!((shown.instance_count, shown.healthy_instance_count, shown.protected), (2, 1, false));
    assert_eq!(shown.clusters.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert!(matches!(
        shown.clusters[0].settings.as_ref().unwrap().health_checker.as_ref().unwrap().kind,
        Some(Kind::Tcp(_))
    ));

    let delete = pb::DeleteServiceRequest { key: Some(service("s")) };
    assert_refused(native.catalog.delete_service(delete.clone()).await, Code::FailedPrecondition, "");
    for port in [1, 2] {
        let leave = pb::DeregisterInstanceRequest { key: Some(instance("s", port)), ..Default::default() };
        native.registry.deregister_instance(leave).await.unwrap();
    }
    native.catalog.delete_service(delete.clone()).await.unwrap();
    assert_refused(native.catalog.delete_service(delete).await, Code::NotFound, "");
    assert_refused(native.catalog.get_service(get).await, Code::NotFound, "");
    let late = update(settings(0.1), &[]);
    assert_refused(native.catalog.update_service(late).await, Code::NotFound, "");
}

#[tokio::test]
async fn bad_settings_name_their_field() {
    let mut native = Native::start().await;
    let with = |change: fn(&mut pb::ServiceSettings)| {
        let mut settings = pb::ServiceSettings::default();
        change(&mut settings);
        pb::CreateServiceRequest { key: Some(service("s")), settings: Some(settings) }
    };
    for (field, request) in [
        ("settings.protect_threshold", with(|settings| settings.protect_threshold = Some(f32::NAN))),
        ("settings.protect_threshold", with(|settings| settings.protect_threshold = Some(f32::INFINITY))),
        ("settings.protect_threshold", with(|settings| settings.protect_threshold = Some(1.5))),
        ("settings.metadata", with(|settings| settings.metadata = map(&[("k", &"v".repeat(70_000))]))),
        (
            "settings.selector.label.labels",
            with(|settings| {
                let rule = Some(pb::selector::Rule::Label(pb::LabelSelector { labels: vec![] }));
                settings.selector = Some(pb::Selector { rule });
            }),
        ),
        ("key", pb::CreateServiceRequest::default()),
        ("key.service", pb::CreateServiceRequest { key: Some(service("a b")), settings: None }),
    ] {
        assert_refused(native.catalog.create_service(request).await, Code::InvalidArgument, field);
    }
    let nothing = pb::UpdateServiceRequest { key: Some(service("s")), ..Default::default() };
    assert_refused(native.catalog.update_service(nothing).await, Code::InvalidArgument, "update_mask");
    assert_refused(
        native.catalog.get_service(pb::GetServiceRequest { key: Some(service("s")) }).await,
        Code::NotFound,
        "",
    );
}

#[tokio::test]
async fn services_are_listed_in_pages_and_by_filters() {
    let mut native = Native::start().await;
    for number in 0..25 {
        native.register(instance(&format!("order-{number:02}"), 1), Default::default()).await;
    }
    let other = pb::InstanceKey { group: "g2".into(), ..instance("pay", 1) };
    native.register(other, Default::default()).await;
    let empty = pb::CreateServiceRequest { key: Some(service("empty")), settings: None };
    native.catalog.create_service(empty).await.unwrap();

    let mut names = Vec::new();
    let mut request = pb::ListServicesRequest { page_size: 10, ..Default::default() };
    loop {
        let answer = native.catalog.list_services(request.clone()).await.unwrap().into_inner();
        assert_eq!(answer.total_size, 27);
        assert!(answer.services.len() <= 10);
        names.extend(answer.services.iter().map(|row| row.key.clone().unwrap().service));
        if answer.next_page_token.is_empty() {
            break;
        }
        request.page_token = answer.next_page_token;
    }
    let mut expected = vec!["empty".to_owned()];
    expected.extend((0..25).map(|number| format!("order-{number:02}")));
    expected.push("pay".to_owned());
    assert_eq!(names, expected);

    for (total, request) in [
        (1, pb::ListServicesRequest { group: "g2".into(), ..Default::default() }),
        (10, pb::ListServicesRequest { name_contains: "order-1".into(), ..Default::default() }),
        (26, pb::ListServicesRequest { non_empty_only: true, ..Default::default() }),
        (0, pb::ListServicesRequest { namespace: "dev".into(), ..Default::default() }),
    ] {
        let answer = native.catalog.list_services(request.clone()).await.unwrap().into_inner();
        assert_eq!((answer.total_size, answer.services.len()), (total, total as usize), "{request:?}");
    }
    let filtered = pb::ListServicesRequest { name_contains: "order-1".into(), page_size: 6, ..Default::default() };
    let first = native.catalog.list_services(filtered.clone()).await.unwrap().into_inner();
    let second = pb::ListServicesRequest { page_token: first.next_page_token, ..filtered };
    let second = native.catalog.list_services(second).await.unwrap().into_inner();
    assert_eq!((first.services.len(), second.services.len(), second.total_size), (6, 4, 10));
    for (field, request) in [
        ("page_size", pb::ListServicesRequest { page_size: -7, ..Default::default() }),
        ("page_token", pb::ListServicesRequest { page_token: "x".into(), ..Default::default() }),
        ("namespace", pb::ListServicesRequest { namespace: "a b".into(), ..Default::default() }),
        ("group", pb::ListServicesRequest { group: "a b".into(), ..Default::default() }),
    ] {
        assert_refused(native.catalog.list_services(request).await, Code::InvalidArgument, field);
    }
}

#[tokio::test]
async fn a_cluster_is_set_up_in_parts() {
    let mut native = Native::start().await;
    native.register(instance("s", 1), Default::default()).await;
    let update = |settings, paths: &[&str]| pb::UpdateClusterRequest {
        key: Some(service("s")),
        cluster: String::new(),
        settings: Some(settings),
        update_mask: mask(paths),
    };
    let http = pb::HealthChecker {
        kind: Some(Kind::Http(pb::HttpHealthChecker {
            path: "/up".into(),
            headers: map(&[("x-probe", "nomina")]),
            expected_status: 204,
        })),
    };
    let first = pb::ClusterSettings { health_checker: Some(http.clone()), ..Default::default() };
    let shown = native.catalog.update_cluster(update(first, &[])).await.unwrap().into_inner().cluster.unwrap();
    assert_eq!(shown.name, "DEFAULT");
    let second = pb::ClusterSettings { check_port: Some(8_081), ..Default::default() };
    native.catalog.update_cluster(update(second, &["check_port"])).await.unwrap();
    let get = pb::GetServiceRequest { key: Some(service("s")) };
    let shown = native.catalog.get_service(get).await.unwrap().into_inner().service.unwrap();
    let settings = shown.clusters[0].settings.clone().unwrap();
    assert_eq!((settings.health_checker, settings.check_port), (Some(http), Some(8_081)));
    assert_eq!(settings.use_instance_port, Some(true));
    assert!(shown.explicit);

    let mysql = pb::HealthChecker {
        kind: Some(Kind::Mysql(pb::MysqlHealthChecker {
            user: "u".into(),
            password: "secret".into(),
            command: "select 1".into(),
        })),
    };
    let settings = pb::ClusterSettings { health_checker: Some(mysql), ..Default::default() };
    let shown = native.catalog.update_cluster(update(settings, &[])).await.unwrap().into_inner();
    assert!(!format!("{shown:?}").contains("secret"), "a password is never told");

    let port = pb::ClusterSettings { check_port: Some(65_536), ..Default::default() };
    let answer = native.catalog.update_cluster(update(port, &[])).await;
    assert_refused(answer, Code::InvalidArgument, "settings.check_port");
    let status = pb::HealthChecker {
        kind: Some(Kind::Http(pb::HttpHealthChecker { expected_status: 99, ..Default::default() })),
    };
    let status = pb::ClusterSettings { health_checker: Some(status), ..Default::default() };
    let answer = native.catalog.update_cluster(update(status, &[])).await;
    assert_refused(answer, Code::InvalidArgument, "settings.health_checker.http.expected_status");
    let unknown = pb::UpdateClusterRequest {
        key: Some(service("none")),
        ..update(pb::ClusterSettings { check_port: Some(1), ..Default::default() }, &[])
    };
    assert_refused(native.catalog.update_cluster(unknown).await, Code::NotFound, "");
    let name = pb::UpdateClusterRequest { cluster: "a b".into(), ..update(Default::default(), &["*"]) };
    assert_refused(native.catalog.update_cluster(name).await, Code::InvalidArgument, "cluster");
}

#[tokio::test]
async fn namespaces_come_and_go() {
    let mut native = Native::start().await;
    let create = |id: &str, name: &str| pb::CreateNamespaceRequest {
        namespace: Some(pb::Namespace { id: id.into(), name: name.into(), ..Default::default() }),
    };
    let made = native.catalog.create_namespace(create("dev", "Development")).await.unwrap().into_inner();
    assert_eq!(made.namespace.unwrap().name, "Development");
    let generated = native.catalog.create_namespace(create("", "No id")).await.unwrap().into_inner();
    let generated = generated.namespace.unwrap().id;
    assert_eq!(generated.len(), 36);
    assert_refused(native.catalog.create_namespace(create("dev", "x")).await, Code::AlreadyExists, "");
    assert_refused(native.catalog.create_namespace(create("public", "x")).await, Code::InvalidArgument, "namespace.id");
    assert_refused(native.catalog.create_namespace(create("a b", "")).await, Code::InvalidArgument, "namespace.id");
    assert_refused(
        native.catalog.create_namespace(create("x", &"n".repeat(129))).await,
        Code::InvalidArgument,
        "namespace.name",
    );
    assert_refused(
        native.catalog.create_namespace(pb::CreateNamespaceRequest::default()).await,
        Code::InvalidArgument,
        "namespace",
    );

    let in_dev = pb::InstanceKey { namespace: "dev".into(), ..instance("s", 1) };
    native.register(in_dev, Default::default()).await;
    let described = pb::Namespace { id: "dev".into(), description: "of the team".into(), ..Default::default() };
    let update = pb::UpdateNamespaceRequest { namespace: Some(described), update_mask: None };
    let shown = native.catalog.update_namespace(update).await.unwrap().into_inner().namespace.unwrap();
    assert_eq!((shown.name.as_str(), shown.description.as_str()), ("Development", "of the team"));
    assert_eq!(shown.service_count, 1);

    let all = native.catalog.list_namespaces(pb::ListNamespacesRequest {}).await.unwrap().into_inner().namespaces;
    assert_eq!(all[0].id, "public");
    let mut ids: Vec<_> = all[1..].iter().map(|namespace| namespace.id.clone()).collect();
    assert!(ids.is_sorted());
    ids.retain(|id| *id != generated);
    assert_eq!(ids, ["dev"]);

    let delete = |id: &str| pb::DeleteNamespaceRequest { id: id.into() };
    native.catalog.delete_namespace(delete(&generated)).await.unwrap();
    assert_refused(native.catalog.delete_namespace(delete(&generated)).await, Code::NotFound, "");
    assert_refused(native.catalog.delete_namespace(delete("public")).await, Code::InvalidArgument, "id");
    assert_refused(
        native.catalog.get_namespace(pb::GetNamespaceRequest { id: "none".into() }).await,
        Code::NotFound,
        "",
    );
    let public = native.catalog.get_namespace(pb::GetNamespaceRequest::default()).await.unwrap().into_inner();
    assert_eq!(public.namespace.unwrap().id, "public");
}
