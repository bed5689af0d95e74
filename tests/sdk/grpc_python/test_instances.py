"""RegisterInstance, DeregisterInstance, UpdateInstance, ResetInstanceOverlay, GetInstance, ListInstances."""

import grpc
import pytest
from google.protobuf import duration_pb2, field_mask_pb2
from google.rpc import error_details_pb2

INVALID = grpc.StatusCode.INVALID_ARGUMENT
NOT_FOUND = grpc.StatusCode.NOT_FOUND


def seconds(value):
    duration = duration_pb2.Duration()
    duration.FromMilliseconds(round(value * 1000))
    return duration


def test_a_registration_is_answered_and_found_whole(pb, registry, register, key, listed, service):
    metadata = {"zone": "a", "sign": "1+1=2 & 100% a%2Fb", "text": "服务 🚀\n\"x\"", "empty": ""}
    answer = register(
        cluster="c1",
        spec={
            "weight": 2.5,
            "metadata": metadata,
            "heartbeat_interval": seconds(2),
            "heartbeat_timeout": seconds(6),
            "delete_timeout": seconds(12),
        },
    )
    instance = answer.instance
    assert (instance.cluster, instance.ip, instance.port) == ("c1", "10.1.2.3", 8080)
    assert (instance.weight, instance.enabled, instance.healthy) == (2.5, True, True)
    assert instance.kind == pb.INSTANCE_KIND_EPHEMERAL
    assert metadata.items() <= dict(instance.metadata).items()
    assert instance.instance_id == f"10.1.2.3#8080#c1#DEFAULT_GROUP@@{service}"
    periods = instance.heartbeat_interval, instance.heartbeat_timeout, instance.delete_timeout
    assert periods == (seconds(2), seconds(6), seconds(12))
    assert instance.since_last_beat.ToMilliseconds() < 6000
    assert not instance.HasField("overlay")
    assert answer.revision > 0

    got = registry.GetInstance(pb.GetInstanceRequest(key=key(cluster="c1")))
    assert got.revision == answer.revision
    for seen in (got.instance, listed()[8080]):
        seen.ClearField("since_last_beat")
        instance.ClearField("since_last_beat")
        assert seen == instance


def test_defaults(pb, register):
    instance = register().instance
    assert (instance.cluster, instance.weight, instance.enabled, instance.healthy) == ("DEFAULT", 1.0, True, True)
    periods = instance.heartbeat_interval, instance.heartbeat_timeout, instance.delete_timeout
    assert periods == (seconds(5), seconds(15), seconds(30))
    assert dict(instance.metadata) == {}


def test_periods_are_metadata_to_the_other_apis(register):
    instance = register(spec={"metadata": {"preserved.heart.beat.timeout": "7000"}, "delete_timeout": seconds(9)}).instance
    assert (instance.heartbeat_timeout, instance.delete_timeout) == (seconds(7), seconds(9))
    assert instance.metadata["preserved.ip.delete.timeout"] == "9000"


def test_empty_names_mean_the_defaults(pb, registry, register, service):
    register(namespace="", cluster="")
    spelled_out = pb.InstanceKey(
        namespace="public", group="DEFAULT_GROUP", service=service, cluster="DEFAULT", ip="10.1.2.3", port=8080
    )
    assert registry.GetInstance(pb.GetInstanceRequest(key=spelled_out)).instance.port == 8080
    registry.DeregisterInstance(pb.DeregisterInstanceRequest(key=spelled_out))


def test_registering_again_replaces_and_the_revision_grows(register, listed):
    first = register(spec={"weight": 1, "metadata": {"v": "1", "old": "x"}})
    second = register(spec={"weight": 4, "metadata": {"v": "2"}})
    assert second.revision > first.revision
    assert (listed()[8080].weight, dict(listed()[8080].metadata)) == (4, {"v": "2"})
    assert second.instance.instance_id == first.instance.instance_id


def test_registering_the_same_again_changes_nothing(register):
    assert register(spec={"weight": 2}).revision == register(spec={"weight": 2}).revision


@pytest.mark.parametrize("weight", [0, 0.01, 0.5, 10000])
def test_weights_come_back_exactly(register, weight):
    assert register(spec={"weight": weight}).instance.weight == weight


@pytest.mark.parametrize("port", [0, 1, 65535])
def test_every_port_is_possible(register, listed, port):
    assert register(port).instance.port == port
    assert list(listed()) == [port]


BAD_KEYS = {
    "no service": ({"service": ""}, "key.service"),
    "a blank in the service": ({"service": "a b"}, "key.service"),
    "a joined name": ({"service": "g@@s"}, "key.service"),
    "a leading @": ({"service": "@s"}, "key.service"),
    "a long service": ({"service": "s" * 513}, "key.service"),
    "a bad group": ({"group": "a/b"}, "key.group"),
    "a long group": ({"group": "g" * 129}, "key.group"),
    "a bad namespace": ({"namespace": "a/b"}, "key.namespace"),
    "a long namespace": ({"namespace": "n" * 65}, "key.namespace"),
    "a bad cluster": ({"cluster": "a/b"}, "key.cluster"),
    "a long cluster": ({"cluster": "c" * 65}, "key.cluster"),
    "no ip": ({"ip": ""}, "key.ip"),
    "a blank in the ip": ({"ip": "10.0.0. 1"}, "key.ip"),
    "digits that are no address": ({"ip": "999.1.1.1"}, "key.ip"),
    "a long ip": ({"ip": "h" * 129}, "key.ip"),
    "a port above the range": ({"port": 65536}, "key.port"),
    "the largest port": ({"port": 4294967295}, "key.port"),
}


@pytest.mark.parametrize("fields, at_fault", BAD_KEYS.values(), ids=BAD_KEYS)
@pytest.mark.parametrize(
    "method", ["RegisterInstance", "DeregisterInstance", "UpdateInstance", "ResetInstanceOverlay", "GetInstance", "Beat"]
)
def test_bad_keys_are_refused_by_name(pb, registry, key, refused, listed, method, fields, at_fault):
    request = getattr(pb, f"{method}Request")(key=key(**fields))
    if method == "UpdateInstance":
        request.weight = 2
    refusal = refused(getattr(registry, method), request, INVALID)
    assert refusal.fields == [at_fault]
    assert listed() == {}


BAD_SPECS = {
    "weight below": ({"weight": -1}, "spec.weight"),
    "weight above": ({"weight": 10000.1}, "spec.weight"),
    "weight NaN": ({"weight": float("nan")}, "spec.weight"),
    "weight infinite": ({"weight": float("inf")}, "spec.weight"),
    "unknown kind": ({"kind": 77}, "spec.kind"),
    "metadata too large": ({"metadata": {"k": "x" * (64 * 1024)}}, "spec.metadata"),
    "a period of zero": ({"heartbeat_interval": duration_pb2.Duration()}, "spec.heartbeat_interval"),
    "a negative period": ({"heartbeat_timeout": duration_pb2.Duration(seconds=-1)}, "spec.heartbeat_timeout"),
    "a broken millisecond": ({"delete_timeout": duration_pb2.Duration(seconds=30, nanos=1)}, "spec.delete_timeout"),
    "a period that never ends": ({"delete_timeout": duration_pb2.Duration(seconds=86401)}, "spec.delete_timeout"),
}


@pytest.mark.parametrize("spec, at_fault", BAD_SPECS.values(), ids=BAD_SPECS)
def test_bad_specs_are_refused_by_name(register, refused, listed, spec, at_fault):
    assert refused(lambda _: register(spec=spec), None, INVALID).fields == [at_fault]
    assert listed() == {}


def test_a_timeout_below_the_interval_is_refused(register, refused, listed):
    spec = {"heartbeat_interval": seconds(10), "heartbeat_timeout": seconds(5)}
    refusal = refused(lambda _: register(spec=spec), None, INVALID)
    assert refusal.fields and refusal.fields[0].startswith("spec.")
    assert listed() == {}


def test_a_missing_key_is_refused_by_name(pb, registry, refused):
    for method in ["RegisterInstance", "DeregisterInstance", "GetInstance", "ListInstances", "WatchService", "Beat"]:
        assert refused(getattr(registry, method), getattr(pb, f"{method}Request")(), INVALID).fields == ["key"], method


def test_the_refusal_of_large_metadata_names_limit_and_size(register, refused):
    refusal = refused(lambda _: register(spec={"metadata": {"key": "x" * 70000}}), None, INVALID)
    assert "65536" in refusal.message and "70003" in refusal.message


def test_metadata_just_below_the_limit_are_kept(register, listed):
    metadata = {"key": "x" * (64 * 1024 - 3)}
    register(spec={"metadata": metadata})
    assert dict(listed()[8080].metadata) == metadata


def test_unknown_instances_are_not_found(pb, registry, key, register, refused):
    requests = {
        "GetInstance": pb.GetInstanceRequest(key=key()),
        "DeregisterInstance": pb.DeregisterInstanceRequest(key=key()),
        "UpdateInstance": pb.UpdateInstanceRequest(key=key(), weight=2),
        "ResetInstanceOverlay": pb.ResetInstanceOverlayRequest(key=key()),
    }
    for method, request in requests.items():
        refused(getattr(registry, method), request, NOT_FOUND)
    register(8081)
    for method, request in requests.items():
        refusal = refused(getattr(registry, method), request, NOT_FOUND)
        assert refusal.detail(error_details_pb2.RetryInfo) is None


def test_deregistering_removes_one_instance(pb, registry, register, key, listed, refused):
    register(8080), register(8081)
    answer = registry.DeregisterInstance(pb.DeregisterInstanceRequest(key=key(8080)))
    assert answer.revision > 0
    assert list(listed()) == [8081]
    refused(registry.DeregisterInstance, pb.DeregisterInstanceRequest(key=key(8080)), NOT_FOUND)


def test_deregistering_another_kind_is_refused(pb, registry, register, key, listed, refused):
    register()
    request = pb.DeregisterInstanceRequest(key=key(), kind=pb.INSTANCE_KIND_PERSISTENT)
    refused(registry.DeregisterInstance, request, grpc.StatusCode.FAILED_PRECONDITION)
    assert list(listed()) == [8080]
    request.kind = pb.INSTANCE_KIND_EPHEMERAL
    registry.DeregisterInstance(request)
    assert listed() == {}


def test_without_a_cluster_the_only_instance_of_that_address_is_meant(pb, registry, register, key, listed, refused):
    register(cluster="c1")
    assert registry.GetInstance(pb.GetInstanceRequest(key=key())).instance.cluster == "c1"
    register(cluster="c2")
    refusal = refused(registry.GetInstance, pb.GetInstanceRequest(key=key()), INVALID)
    assert "c1" in refusal.message and "c2" in refusal.message
    assert refusal.fields == ["key.cluster"]
    register(cluster="DEFAULT")
    assert registry.GetInstance(pb.GetInstanceRequest(key=key())).instance.cluster == "DEFAULT"
    registry.DeregisterInstance(pb.DeregisterInstanceRequest(key=key()))
    refused(registry.DeregisterInstance, pb.DeregisterInstanceRequest(key=key()), INVALID)
    refused(registry.DeregisterInstance, pb.DeregisterInstanceRequest(key=key(cluster="c3")), NOT_FOUND)


def test_an_overlay_wins_over_the_publisher_until_it_is_reset(pb, registry, register, key):
    register(spec={"weight": 2, "metadata": {"zone": "a", "v": "1"}})
    changed = registry.UpdateInstance(pb.UpdateInstanceRequest(key=key(), weight=0, enabled=False, metadata={"v": "op"}))
    instance = changed.instance
    assert (instance.weight, instance.enabled, dict(instance.metadata)) == (0, False, {"zone": "a", "v": "op"})
    assert (instance.overlay.weight, instance.overlay.enabled) == (0, False)
    assert dict(instance.overlay.metadata) == {"v": "op"}
    assert instance.overlay.origin.startswith("grpc")
    assert instance.overlay.HasField("age")

    again = register(spec={"weight": 3, "metadata": {"zone": "b", "v": "2"}}).instance
    assert (again.weight, again.enabled, dict(again.metadata)) == (0, False, {"zone": "b", "v": "op"})

    reset = registry.ResetInstanceOverlay(pb.ResetInstanceOverlayRequest(key=key()))
    assert reset.revision > changed.revision
    assert (reset.instance.weight, reset.instance.enabled) == (3, True)
    assert dict(reset.instance.metadata) == {"zone": "b", "v": "2"}
    assert not reset.instance.HasField("overlay")
    assert registry.ResetInstanceOverlay(pb.ResetInstanceOverlayRequest(key=key())).revision == reset.revision


def test_an_update_changes_what_is_set_or_what_the_mask_names(pb, registry, register, key):
    register(spec={"weight": 2})

    def update(paths=(), **values):
        request = pb.UpdateInstanceRequest(key=key(), update_mask=field_mask_pb2.FieldMask(paths=paths), **values)
        return registry.UpdateInstance(request).instance

    seen = update(weight=5)
    assert (seen.weight, seen.overlay.weight, seen.overlay.HasField("enabled")) == (5, 5, False)
    seen = update(enabled=False)
    assert (seen.weight, seen.enabled) == (5, False)
    seen = update(paths=["enabled"], weight=9, enabled=True)
    assert (seen.weight, seen.enabled) == (5, True)
    seen = update(paths=["weight"])
    assert (seen.weight, seen.overlay.HasField("weight"), seen.overlay.enabled) == (2, False, True)
    seen = update(paths=["*"])
    assert not seen.HasField("overlay") and seen.enabled


def test_updates_that_say_nothing_or_nonsense_are_refused(pb, registry, register, key, refused):
    register()
    mask = lambda *paths: field_mask_pb2.FieldMask(paths=paths)
    for request, at_fault in [
        (pb.UpdateInstanceRequest(key=key()), "update_mask"),
        (pb.UpdateInstanceRequest(key=key(), weight=1, update_mask=mask("colour")), "update_mask"),
        (pb.UpdateInstanceRequest(key=key(), weight=1, update_mask=mask("key")), "update_mask"),
        (pb.UpdateInstanceRequest(key=key(), weight=float("nan")), "weight"),
        (pb.UpdateInstanceRequest(key=key(), metadata={"k": "x" * 70000}), "metadata"),
    ]:
        assert refused(registry.UpdateInstance, request, INVALID).fields == [at_fault], request
    assert not registry.GetInstance(pb.GetInstanceRequest(key=key())).instance.HasField("overlay")


def test_deregistering_takes_the_overlay_away(pb, registry, register, key):
    register(spec={"metadata": {"v": "1"}})
    registry.UpdateInstance(pb.UpdateInstanceRequest(key=key(), weight=0, metadata={"v": "old"}))
    registry.DeregisterInstance(pb.DeregisterInstanceRequest(key=key()))
    instance = register(spec={"metadata": {"v": "2"}}).instance
    assert (instance.weight, dict(instance.metadata)) == (1, {"v": "2"})


def test_lists_filter_clusters_health_and_switch(pb, registry, register, key, listed):
    register(1001, cluster="c1"), register(1002, cluster="c1", spec={"healthy": False}), register(1003, cluster="c2")
    register(1004, spec={"enabled": False})
    assert list(listed()) == [1001, 1002, 1003]
    assert list(listed(clusters=["c1"])) == [1001, 1002]
    assert list(listed(clusters=["c2", "none"])) == [1003]
    assert list(listed(clusters=["none"])) == []
    assert list(listed(healthy_only=True)) == [1001, 1003]
    assert list(listed(raw=True)) == [1001, 1002, 1003, 1004]


def test_a_service_that_does_not_exist_is_an_empty_list(pb, registry, catalog, service_key, refused):
    answer = registry.ListInstances(pb.ListInstancesRequest(key=service_key))
    assert answer == pb.ListInstancesResponse()
    refused(catalog.GetService, pb.GetServiceRequest(key=service_key), NOT_FOUND)


def test_lists_come_in_pages_and_in_order(pb, registry, register, service_key):
    ports = list(range(2000, 2025))
    for port in reversed(ports):
        register(port)
    seen, token = [], ""
    while True:
        answer = registry.ListInstances(pb.ListInstancesRequest(key=service_key, page_size=10, page_token=token))
        assert answer.total_size == 25
        assert len(answer.instances) <= 10
        seen += [instance.port for instance in answer.instances]
        token = answer.next_page_token
        if not token:
            break
    assert seen == ports


def test_bad_pages_are_refused(pb, registry, register, service_key, refused):
    register()
    for options, at_fault in [({"page_size": -1}, "page_size"), ({"page_token": "nonsense"}, "page_token")]:
        request = pb.ListInstancesRequest(key=service_key, **options)
        assert refused(registry.ListInstances, request, INVALID).fields == [at_fault]
    answer = registry.ListInstances(pb.ListInstancesRequest(key=service_key, page_size=2147483647))
    assert len(answer.instances) == 1


def test_a_large_list_fits_the_default_limit_of_clients(pb, registry, register, service_key):
    # 80 instances of 60 KiB each are more than the 4 MiB that a stock client takes in one message.
    for port in range(3000, 3080):
        register(port, spec={"metadata": {"k": "x" * 60_000}})
    seen, token = [], ""
    while True:
        answer = registry.ListInstances(pb.ListInstancesRequest(key=service_key, page_token=token))
        seen += [instance.port for instance in answer.instances]
        token = answer.next_page_token
        if not token:
            break
    assert seen == list(range(3000, 3080))


def test_names_of_rpc_frameworks_are_kept_to_the_letter(pb, register, catalog, namespace):
    names = [
        "providers:com.acme.Foo:1.0.0:",
        "providers:com.acme.Foo::",
        "consumers:com.acme.Foo:1.0:*",
        "providers:io.acme.Greeter$IGreeter::",
    ]
    for name in names:
        register(service=name)
    answer = catalog.ListServices(pb.ListServicesRequest(namespace=namespace))
    assert sorted(row.key.service for row in answer.services) == sorted(names)
    assert all(row.instance_count == 1 for row in answer.services)


def test_a_persistent_instance_is_refused_or_kept_as_such(pb, register, listed, refused):
    try:
        instance = register(spec={"kind": pb.INSTANCE_KIND_PERSISTENT}).instance
        assert instance.kind == pb.INSTANCE_KIND_PERSISTENT
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.UNIMPLEMENTED
        assert "persistent" in error.details()
        assert listed() == {}
