"""WatchService: the full state, then what changes."""

from concurrent.futures import ThreadPoolExecutor

import grpc
from google.protobuf import duration_pb2
from waiting import holds_for, wait_until


def kinds(watch):
    return [message.WhichOneof("event") for message in list(watch.messages)]


def test_a_watch_begins_with_the_full_state(pb, register, watch, service_key):
    register(1002), register(1001, cluster="c1", spec={"weight": 2, "metadata": {"zone": "a"}})
    seen = watch()
    state = seen.wait_for_ports(1001, 1002)
    assert kinds(seen) == ["full"]
    full = seen.messages[0].full
    assert full.service.key.service == service_key.service
    assert full.service.key.group == "DEFAULT_GROUP"
    assert [instance.port for instance in full.instances] == [1001, 1002]
    one = state["c1", "10.1.2.3", 1001]
    assert (one.weight, dict(one.metadata), one.healthy, one.enabled) == (2, {"zone": "a"}, True, True)
    assert not one.HasField("since_last_beat")


def test_a_service_need_not_exist_yet(register, watch):
    seen = watch()
    assert seen.wait_for_ports() == {}
    assert not seen.messages[0].full.HasField("service")
    register()
    seen.wait_for_ports(8080)


def test_changes_come_as_deltas_of_what_changed(pb, registry, register, watch, key):
    for port in range(1001, 1051):
        register(port)
    seen = watch()
    seen.wait_for(lambda state: len(state) == 50, "the full state")

    revision = register(2001).revision
    seen.wait_for(lambda state: len(state) == 51, "one more")
    registry.UpdateInstance(pb.UpdateInstanceRequest(key=key(1001), weight=7))
    seen.wait_for(lambda state: state["DEFAULT", "10.1.2.3", 1001].weight == 7, "one changed")
    registry.DeregisterInstance(pb.DeregisterInstanceRequest(key=key(1002)))
    seen.wait_for(lambda state: len(state) == 50, "one less")

    assert kinds(seen) == ["full", "delta", "delta", "delta"]
    added, changed, removed = [message.delta for message in seen.messages[1:]]
    assert ([i.port for i in added.upserts], list(added.removals)) == ([2001], [])
    assert ([i.port for i in changed.upserts], list(changed.removals)) == ([1001], [])
    assert (list(changed.upserts[0].overlay.metadata), changed.upserts[0].overlay.weight) == ([], 7)
    assert (list(removed.upserts), [a.port for a in removed.removals]) == ([], [1002])
    assert seen.messages[1].revision == revision
    revisions = [message.revision for message in seen.messages]
    assert revisions == sorted(set(revisions))


def test_a_registration_that_changes_nothing_and_beats_are_silent(pb, registry, register, watch, key):
    register()
    seen = watch()
    seen.wait_for_ports(8080)

    def stir():
        register()
        assert registry.Beat(pb.BeatRequest(key=key())).result == pb.BEAT_RESULT_RENEWED
        return len(seen.messages)

    holds_for(stir, lambda count: count == 1, "nothing has changed", seconds=1.5)


def test_a_disabled_instance_is_removed_and_comes_back(pb, registry, register, watch, key):
    register(1001), register(1002)
    seen, raw = watch(), watch(raw=True)
    seen.wait_for_ports(1001, 1002)
    registry.UpdateInstance(pb.UpdateInstanceRequest(key=key(1001), enabled=False))
    seen.wait_for_ports(1002)
    raw.wait_for(lambda state: not state["DEFAULT", "10.1.2.3", 1001].enabled, "the raw watch keeps it")
    registry.UpdateInstance(pb.UpdateInstanceRequest(key=key(1001), enabled=True))
    seen.wait_for_ports(1001, 1002)
    assert raw.ports() == [1001, 1002]


def test_expiry_is_told(register, watch):
    register(1001)
    everybody, healthy = watch(), watch(healthy_only=True)
    spec = {
        "heartbeat_interval": duration_pb2.Duration(nanos=300_000_000),
        "heartbeat_timeout": duration_pb2.Duration(nanos=800_000_000),
        "delete_timeout": duration_pb2.Duration(seconds=2),
    }
    register(1002, spec=spec)
    healthy.wait_for_ports(1001, 1002)
    everybody.wait_for(lambda state: ("DEFAULT", "10.1.2.3", 1002) in state, "the instance")
    everybody.wait_for(lambda state: len(state) == 2 and not state["DEFAULT", "10.1.2.3", 1002].healthy, "it is unhealthy")
    healthy.wait_for_ports(1001)
    everybody.wait_for_ports(1001)


def test_a_watch_of_clusters_is_told_of_them_alone(register, watch):
    register(1001, cluster="c1"), register(2001, cluster="c2")
    seen = watch(clusters=["c1"])
    seen.wait_for_ports(1001)
    register(2002, cluster="c2")
    register(1002, cluster="c1")
    seen.wait_for_ports(1001, 1002)
    told = [i.port for message in seen.messages for i in (*message.full.instances, *message.delta.upserts)]
    assert sorted(told) == [1001, 1002]


def test_service_settings_are_told(pb, catalog, register, watch, service_key):
    register()
    seen = watch()
    seen.wait_for_ports(8080)
    settings = pb.ServiceSettings(metadata={"owner": "me"})
    catalog.UpdateService(pb.UpdateServiceRequest(key=service_key, settings=settings))

    def owner():
        services = [message.delta.service for message in seen.messages if message.delta.HasField("service")]
        return services[-1].settings.metadata.get("owner") if services else None

    wait_until(owner, lambda found: found == "me", "the new settings")
    assert seen.ports() == [8080]


def test_a_deleted_service_is_told_and_the_watch_goes_on(pb, registry, catalog, register, watch, key, service_key):
    register()
    seen = watch()
    seen.wait_for_ports(8080)
    registry.DeregisterInstance(pb.DeregisterInstanceRequest(key=key()))
    seen.wait_for_ports()
    catalog.DeleteService(pb.DeleteServiceRequest(key=service_key))
    wait_until(
        lambda: any(message.delta.service_deleted for message in list(seen.messages)), lambda told: told, "the service is gone"
    )
    register(1001)
    seen.wait_for_ports(1001)


def test_protection_is_told(pb, catalog, register, watch, service_key):
    catalog.CreateService(pb.CreateServiceRequest(key=service_key, settings=pb.ServiceSettings(protect_threshold=0.6)))
    register(1001), register(1002)
    seen = watch()
    seen.wait_for_ports(1001, 1002)
    assert not seen.messages[-1].protected
    register(1002, spec={"healthy": False})
    wait_until(lambda: seen.messages[-1].protected, lambda told: told, "the protection")
    assert all(instance.healthy for instance in seen.state.values())


def test_every_watcher_reaches_the_newest_state(register, watch):
    watches = [watch() for _ in range(10)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(register, range(3000, 3200)))
    newest = max(answer.revision for answer in answers)
    for seen in watches:
        state = seen.wait_for(lambda state: len(state) == 200, "all instances")
        assert sorted(port for _, _, port in state) == list(range(3000, 3200))
        assert seen.messages[-1].revision == newest
        revisions = [message.revision for message in seen.messages]
        assert revisions == sorted(revisions)


def test_a_large_state_comes_in_parts(register, watch):
    # Together more than the 4 MiB that a stock client takes in one message.
    ports = range(3000, 3080)
    for port in ports:
        register(port, spec={"metadata": {"k": "x" * 60_000}})
    seen = watch()
    seen.wait_for(lambda state: len(state) == len(ports), "the whole state")
    assert len(seen.messages) > 1
    assert [message.more for message in seen.messages] == [True] * (len(seen.messages) - 1) + [False]


def test_a_watcher_is_listed_and_leaves(pb, catalog, register, watch, service_key):
    register()
    seen = watch(clusters=["DEFAULT"], consumer=pb.Consumer(ip="10.9.9.9"))
    seen.wait_for_ports(8080)

    def subscribers():
        return list(catalog.ListSubscribers(pb.ListSubscribersRequest(key=service_key)).subscribers)

    (subscriber,) = wait_until(subscribers, lambda found: len(found) == 1, "the watcher is listed")
    assert subscriber.protocol == pb.SUBSCRIBER_PROTOCOL_WATCH
    assert subscriber.agent.startswith("grpc-python/")
    assert subscriber.clusters == "DEFAULT"
    assert subscriber.address
    seen.call.cancel()
    wait_until(subscribers, lambda found: found == [], "the watcher has left")
    assert seen.end is None or seen.end.code() == grpc.StatusCode.CANCELLED


def test_a_change_over_http_is_told_to_a_watch_over_grpc(http_address, namespace, service, watch):
    import urllib.request

    seen = watch()
    seen.wait_for_ports()
    query = f"namespaceId={namespace}&serviceName={service}&ip=10.1.2.3&port=8080&weight=2.5"
    request = urllib.request.Request(f"http://{http_address}/nacos/v1/ns/instance?{query}", method="POST")
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert answer.read() == b"ok"
    assert seen.wait_for_ports(8080)["DEFAULT", "10.1.2.3", 8080].weight == 2.5
