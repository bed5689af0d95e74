"""CatalogService: services, clusters, subscribers, namespaces."""

import grpc
import pytest
from google.protobuf import field_mask_pb2

INVALID = grpc.StatusCode.INVALID_ARGUMENT
NOT_FOUND = grpc.StatusCode.NOT_FOUND


def mask(*paths):
    return field_mask_pb2.FieldMask(paths=paths)


@pytest.fixture
def settings(pb):
    return pb.ServiceSettings(
        protect_threshold=0.5, metadata={"owner": "me"}, selector=pb.Selector(label=pb.LabelSelector(labels=["zone"]))
    )


def test_a_created_service_is_found_and_stays(pb, catalog, service_key, settings):
    created = catalog.CreateService(pb.CreateServiceRequest(key=service_key, settings=settings)).service
    assert created.key.group == "DEFAULT_GROUP"
    assert created.settings == settings
    assert created.explicit
    got = catalog.GetService(pb.GetServiceRequest(key=service_key)).service
    assert got == created
    assert (got.instance_count, got.healthy_instance_count, list(got.clusters)) == (0, 0, [])


def test_what_is_there_cannot_be_created(pb, catalog, service_key, register, refused):
    catalog.CreateService(pb.CreateServiceRequest(key=service_key))
    refused(catalog.CreateService, pb.CreateServiceRequest(key=service_key), grpc.StatusCode.ALREADY_EXISTS)


def test_what_is_not_there_is_not_found(pb, catalog, service_key, refused):
    settings = pb.ServiceSettings(protect_threshold=0.5)
    refused(catalog.GetService, pb.GetServiceRequest(key=service_key), NOT_FOUND)
    refused(catalog.UpdateService, pb.UpdateServiceRequest(key=service_key, settings=settings), NOT_FOUND)
    refused(catalog.DeleteService, pb.DeleteServiceRequest(key=service_key), NOT_FOUND)
    cluster = pb.UpdateClusterRequest(key=service_key, settings=pb.ClusterSettings(check_port=80))
    refused(catalog.UpdateCluster, cluster, NOT_FOUND)


def test_a_registration_brings_its_service(pb, catalog, service_key, register):
    register(1001, cluster="c1"), register(1002, cluster="c2", spec={"healthy": False})
    service = catalog.GetService(pb.GetServiceRequest(key=service_key)).service
    assert not service.explicit
    assert (service.instance_count, service.healthy_instance_count) == (2, 1)
    assert [cluster.name for cluster in service.clusters] == ["c1", "c2"]
    assert service.revision > 0


def test_an_update_changes_what_is_set_or_what_the_mask_names(pb, catalog, service_key, settings):
    catalog.CreateService(pb.CreateServiceRequest(key=service_key, settings=settings))

    def update(paths=(), **values):
        request = pb.UpdateServiceRequest(key=service_key, settings=pb.ServiceSettings(**values), update_mask=mask(*paths))
        return catalog.UpdateService(request).service.settings

    seen = update(protect_threshold=0.25)
    assert (seen.protect_threshold, dict(seen.metadata), seen.selector) == (0.25, {"owner": "me"}, settings.selector)
    seen = update(["metadata"], protect_threshold=0.75)
    assert (seen.protect_threshold, dict(seen.metadata)) == (0.25, {})
    seen = update(["*"])
    assert seen == pb.ServiceSettings()


def test_bad_settings_are_refused_by_name(pb, catalog, service_key, refused):
    for settings, at_fault in [
        (pb.ServiceSettings(protect_threshold=-0.1), "settings.protect_threshold"),
        (pb.ServiceSettings(protect_threshold=1.1), "settings.protect_threshold"),
        (pb.ServiceSettings(protect_threshold=float("nan")), "settings.protect_threshold"),
        (pb.ServiceSettings(metadata={"k": "x" * 70000}), "settings.metadata"),
        (pb.ServiceSettings(selector=pb.Selector(label=pb.LabelSelector())), "settings.selector.label.labels"),
    ]:
        request = pb.CreateServiceRequest(key=service_key, settings=settings)
        assert refused(catalog.CreateService, request, INVALID).fields == [at_fault], settings
    refused(catalog.GetService, pb.GetServiceRequest(key=service_key), NOT_FOUND)
    catalog.CreateService(pb.CreateServiceRequest(key=service_key))
    refusal = refused(catalog.UpdateService, pb.UpdateServiceRequest(key=service_key), INVALID)
    assert refusal.fields == ["update_mask"]


def test_a_service_with_instances_cannot_be_deleted(pb, registry, catalog, service_key, register, key, refused):
    register()
    request = pb.DeleteServiceRequest(key=service_key)
    refused(catalog.DeleteService, request, grpc.StatusCode.FAILED_PRECONDITION)
    registry.DeregisterInstance(pb.DeregisterInstanceRequest(key=key()))
    catalog.DeleteService(request)
    refused(catalog.GetService, pb.GetServiceRequest(key=service_key), NOT_FOUND)


def test_services_are_listed_in_pages_and_in_order(pb, catalog, register, namespace):
    names = [f"svc{number:02}" for number in range(12)]
    for name in reversed(names):
        register(service=name, group="g2")
    register(service="another", group="g1")
    catalog.CreateService(pb.CreateServiceRequest(key=pb.ServiceKey(namespace=namespace, group="g2", service="zero")))

    def rows(**options):
        found, token = [], ""
        while True:
            request = pb.ListServicesRequest(namespace=namespace, page_size=5, page_token=token, **options)
            answer = catalog.ListServices(request)
            assert len(answer.services) <= 5
            found += answer.services
            assert answer.total_size >= len(found)
            token = answer.next_page_token
            if not token:
                assert answer.total_size == len(found)
                return found

    def listed(**options):
        return [(row.key.group, row.key.service) for row in rows(**options)]

    everything = [("g1", "another"), *(("g2", name) for name in names), ("g2", "zero")]
    assert listed() == everything
    assert listed(group="g1") == [("g1", "another")]
    assert listed(group="none") == []
    assert listed(name_contains="vc0") == [("g2", name) for name in names[:10]]
    assert listed(non_empty_only=True) == everything[:-1]
    row = rows(group="g1")[0]
    assert (row.cluster_count, row.instance_count, row.healthy_instance_count, row.protected) == (1, 1, 1, False)


def test_protection_marks_all_as_healthy(pb, registry, catalog, service_key, register, listed):
    register(1001), register(1002, spec={"healthy": False})
    assert {port: seen.healthy for port, seen in listed().items()} == {1001: True, 1002: False}
    catalog.UpdateService(pb.UpdateServiceRequest(key=service_key, settings=pb.ServiceSettings(protect_threshold=0.5)))
    answer = registry.ListInstances(pb.ListInstancesRequest(key=service_key, healthy_only=True))
    assert answer.protected
    assert {seen.port: seen.healthy for seen in answer.instances} == {1001: True, 1002: True}
    assert {port: seen.healthy for port, seen in listed(raw=True).items()} == {1001: True, 1002: False}
    assert catalog.GetService(pb.GetServiceRequest(key=service_key)).service.protected


def test_a_selector_picks_by_the_labels_of_the_consumer(pb, registry, catalog, service_key, register):
    selector = pb.Selector(label=pb.LabelSelector(labels=["zone"]))
    catalog.CreateService(pb.CreateServiceRequest(key=service_key, settings=pb.ServiceSettings(selector=selector)))
    for port, zone in [(1001, "a"), (1002, "b")]:
        register(port, spec={"metadata": {"zone": zone}})

    def ports(**consumer):
        request = pb.ListInstancesRequest(key=service_key)
        if consumer:
            request.consumer.CopyFrom(pb.Consumer(**consumer))
        return [seen.port for seen in registry.ListInstances(request).instances]

    assert ports() == [1001, 1002]
    assert ports(labels={"zone": "a"}) == [1001]
    assert ports(labels={"zone": "b"}) == [1002]
    assert ports(labels={"zone": "c"}) == [1001, 1002]


def test_clusters_can_be_set_up(pb, catalog, service_key):
    catalog.CreateService(pb.CreateServiceRequest(key=service_key))
    wanted = pb.ClusterSettings(
        health_checker=pb.HealthChecker(http=pb.HttpHealthChecker(path="/health", headers={"a": "b"}, expected_status=204)),
        check_port=8081,
        use_instance_port=False,
        metadata={"rack": "1"},
    )
    answer = catalog.UpdateCluster(pb.UpdateClusterRequest(key=service_key, cluster="c1", settings=wanted))
    assert answer.cluster == pb.Cluster(name="c1", settings=wanted)
    (cluster,) = catalog.GetService(pb.GetServiceRequest(key=service_key)).service.clusters
    assert cluster == answer.cluster

    change = pb.ClusterSettings(check_port=8082)
    answer = catalog.UpdateCluster(pb.UpdateClusterRequest(key=service_key, cluster="c1", settings=change))
    assert answer.cluster.settings.check_port == 8082
    assert answer.cluster.settings.health_checker == wanted.health_checker


def test_bad_clusters_are_refused_by_name(pb, catalog, service_key, refused):
    catalog.CreateService(pb.CreateServiceRequest(key=service_key))
    status = pb.HealthChecker(http=pb.HttpHealthChecker(expected_status=99))
    for request, at_fault in [
        (pb.UpdateClusterRequest(cluster="a/b", settings=pb.ClusterSettings(check_port=1)), "cluster"),
        (pb.UpdateClusterRequest(settings=pb.ClusterSettings(check_port=65536)), "settings.check_port"),
        (pb.UpdateClusterRequest(settings=pb.ClusterSettings(health_checker=status)), "settings.health_checker.http.expected_status"),
        (pb.UpdateClusterRequest(), "update_mask"),
    ]:
        request.key.CopyFrom(service_key)
        assert refused(catalog.UpdateCluster, request, INVALID).fields == [at_fault]


def test_a_database_password_is_never_shown(pb, catalog, service_key):
    catalog.CreateService(pb.CreateServiceRequest(key=service_key))
    checker = pb.HealthChecker(mysql=pb.MysqlHealthChecker(user="u", password="hush", command="select 1"))
    request = pb.UpdateClusterRequest(key=service_key, settings=pb.ClusterSettings(health_checker=checker))
    answers = [catalog.UpdateCluster(request), catalog.GetService(pb.GetServiceRequest(key=service_key))]
    assert all("hush" not in str(answer) for answer in answers)
    assert answers[0].cluster.settings.health_checker.mysql.user == "u"


def test_a_service_without_subscribers_has_an_empty_list(pb, catalog, service_key, register):
    register()
    assert catalog.ListSubscribers(pb.ListSubscribersRequest(key=service_key)) == pb.ListSubscribersResponse()


def test_the_life_of_a_namespace(pb, catalog, namespace, refused):
    request = pb.CreateNamespaceRequest(namespace=pb.Namespace(id=namespace, name="N", description="of a test"))
    assert catalog.CreateNamespace(request).namespace == request.namespace
    refused(catalog.CreateNamespace, request, grpc.StatusCode.ALREADY_EXISTS)
    assert catalog.GetNamespace(pb.GetNamespaceRequest(id=namespace)).namespace == request.namespace

    change = pb.Namespace(id=namespace, name="M")
    updated = catalog.UpdateNamespace(pb.UpdateNamespaceRequest(namespace=change)).namespace
    assert (updated.name, updated.description) == ("M", "of a test")
    request = pb.UpdateNamespaceRequest(namespace=change, update_mask=mask("description"))
    assert catalog.UpdateNamespace(request).namespace.description == ""

    listed = [row.id for row in catalog.ListNamespaces(pb.ListNamespacesRequest()).namespaces]
    assert listed[0] == "public"
    assert namespace in listed
    assert listed[1:] == sorted(listed[1:])

    catalog.DeleteNamespace(pb.DeleteNamespaceRequest(id=namespace))
    for method, request in [
        ("GetNamespace", pb.GetNamespaceRequest(id=namespace)),
        ("UpdateNamespace", pb.UpdateNamespaceRequest(namespace=change)),
        ("DeleteNamespace", pb.DeleteNamespaceRequest(id=namespace)),
    ]:
        refused(getattr(catalog, method), request, NOT_FOUND)


def test_a_namespace_without_an_id_gets_one(pb, catalog):
    made = catalog.CreateNamespace(pb.CreateNamespaceRequest(namespace=pb.Namespace(name="nameless"))).namespace
    assert made.id
    assert made.name == "nameless"
    catalog.DeleteNamespace(pb.DeleteNamespaceRequest(id=made.id))


def test_public_cannot_be_deleted(pb, catalog, refused):
    refused(catalog.DeleteNamespace, pb.DeleteNamespaceRequest(id="public"), INVALID)
    assert catalog.GetNamespace(pb.GetNamespaceRequest()).namespace.id == "public"


def test_bad_namespaces_are_refused_by_name(pb, catalog, namespace, refused):
    for given, at_fault in [
        (pb.Namespace(id="a/b"), "namespace.id"),
        (pb.Namespace(id="n" * 65), "namespace.id"),
        (pb.Namespace(id=namespace, name="n" * 129), "namespace.name"),
        (pb.Namespace(id=namespace, description="d" * 257), "namespace.description"),
    ]:
        assert refused(catalog.CreateNamespace, pb.CreateNamespaceRequest(namespace=given), INVALID).fields == [at_fault]
    refused(catalog.GetNamespace, pb.GetNamespaceRequest(id=namespace), NOT_FOUND)
