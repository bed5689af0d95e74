"""Register, find, change and remove instances."""

import pytest
from nacos import NacosException

IP = "10.1.2.3"
PORT = 8080


def hosts(client, service, **options):
    return client.list_naming_instance(service, **options)["hosts"]


def only_host(client, service, **options):
    found = hosts(client, service, **options)
    assert len(found) == 1, found
    return found[0]


def refused(call, *arguments, **options):
    """Status with which the server refused a call; the SDK puts it into its message."""
    with pytest.raises(NacosException, match=r"^Request Error, code is \d+$") as caught:
        call(*arguments, **options)
    return int(str(caught.value).rsplit(" ", 1)[1])


def test_a_registration_is_listed_at_once_and_whole(client, service):
    assert client.add_naming_instance(service, IP, PORT, cluster_name="c1", weight=2.5, metadata={"zone": "a"}) is True

    answer = client.list_naming_instance(service)
    assert answer["name"] == f"DEFAULT_GROUP@@{service}"
    assert answer["groupName"] == "DEFAULT_GROUP"
    assert answer["clusters"] == ""
    assert answer["cacheMillis"] == 3000
    assert answer["lastRefTime"] > 1_700_000_000_000
    assert answer["checksum"] == ""
    assert (answer["allIPs"], answer["valid"], answer["reachProtectionThreshold"]) == (False, True, False)

    (host,) = answer["hosts"]
    assert host["instanceId"] == f"{IP}#{PORT}#c1#DEFAULT_GROUP@@{service}"
    assert (host["ip"], host["port"], host["clusterName"]) == (IP, PORT, "c1")
    assert host["serviceName"] == f"DEFAULT_GROUP@@{service}"
    assert isinstance(host["weight"], float) and host["weight"] == 2.5
    assert (host["healthy"], host["valid"], host["enabled"], host["ephemeral"]) == (True, True, True, True)
    assert host["metadata"] == {"zone": "a"}
    assert host["instanceHeartBeatInterval"] == 5000
    assert host["instanceHeartBeatTimeOut"] == 15000
    assert host["ipDeleteTimeout"] == 30000


def test_an_unknown_service_is_an_empty_list(client, service):
    answer = client.list_naming_instance(service)
    assert answer["hosts"] == []
    assert answer["name"] == f"DEFAULT_GROUP@@{service}"
    assert answer["valid"] is True


def test_registering_without_a_cluster_beating_and_leaving_concern_one_instance(client, service):
    # The SDK registers with the words `clusterName=None`; its beats and its DELETE name no cluster at all.
    assert client.add_naming_instance(service, IP, PORT) is True
    registered = only_host(client, service)

    for _ in range(3):
        assert client.send_heartbeat(service, IP, PORT)["code"] == 10200
        assert only_host(client, service) == registered

    assert client.get_naming_instance(service, IP, PORT)["instanceId"] == registered["instanceId"]
    assert client.modify_naming_instance(service, IP, PORT, weight=3.0) is True
    assert only_host(client, service)["weight"] == 3.0
    assert client.remove_naming_instance(service, IP, PORT) is True
    assert hosts(client, service) == []


def test_registering_again_replaces(client, service):
    assert client.add_naming_instance(service, IP, PORT, weight=1.0, metadata={"v": "1", "old": "x"})
    assert client.add_naming_instance(service, IP, PORT, weight=4.0, metadata={"v": "2"})
    host = only_host(client, service)
    assert (host["weight"], host["metadata"]) == (4.0, {"v": "2"})


def test_leaving_is_idempotent(client, service):
    assert client.remove_naming_instance(service, IP, PORT) is True
    assert client.add_naming_instance(service, IP, PORT)
    assert client.remove_naming_instance(service, IP, PORT) is True
    assert client.remove_naming_instance(service, IP, PORT) is True
    assert hosts(client, service) == []


def test_get_returns_one_instance(client, service):
    assert client.add_naming_instance(service, IP, PORT, cluster_name="c1", weight=2.0, metadata={"zone": "a"})
    wanted = {
        "service": f"DEFAULT_GROUP@@{service}",
        "ip": IP,
        "port": PORT,
        "clusterName": "c1",
        "weight": 2.0,
        "healthy": True,
        "instanceId": f"{IP}#{PORT}#c1#DEFAULT_GROUP@@{service}",
        "metadata": {"zone": "a"},
    }
    # More keys are allowed: no SDK minds them.
    assert wanted.items() <= client.get_naming_instance(service, IP, PORT, cluster_name="c1").items()


def test_get_of_what_is_not_there_is_404(client, service):
    assert refused(client.get_naming_instance, service, IP, PORT) == 404
    assert client.add_naming_instance(service, IP, PORT)
    assert refused(client.get_naming_instance, service, IP, PORT + 1) == 404


def test_modify_changes_only_what_is_sent(client, service):
    assert client.add_naming_instance(service, IP, PORT, weight=2.0, metadata={"zone": "a", "v": "1"})

    assert client.modify_naming_instance(service, IP, PORT, weight=0.5) is True
    host = only_host(client, service)
    assert (host["weight"], host["metadata"], host["enabled"]) == (0.5, {"zone": "a", "v": "1"}, True)

    assert client.modify_naming_instance(service, IP, PORT, metadata={"v": "2"}) is True
    host = only_host(client, service)
    assert (host["weight"], host["metadata"]) == (0.5, {"zone": "a", "v": "2"})


def test_a_disabled_instance_is_left_out_until_it_is_enabled(client, service):
    assert client.add_naming_instance(service, IP, PORT, weight=2.0)
    assert client.modify_naming_instance(service, IP, PORT, enable=False) is True
    assert hosts(client, service) == []
    assert client.get_naming_instance(service, IP, PORT)["ip"] == IP
    assert client.send_heartbeat(service, IP, PORT)["code"] == 10200
    assert hosts(client, service) == []

    assert client.modify_naming_instance(service, IP, PORT, enable=True) is True
    host = only_host(client, service)
    assert (host["enabled"], host["weight"]) == (True, 2.0)


def test_registering_disabled_is_possible(client, service):
    assert client.add_naming_instance(service, IP, PORT, enable=False)
    assert hosts(client, service) == []
    assert client.get_naming_instance(service, IP, PORT)["port"] == PORT


def test_modify_of_an_unknown_instance_is_refused(client, service):
    assert refused(client.modify_naming_instance, service, IP, PORT, weight=2.0) == 400
    assert client.add_naming_instance(service, IP, PORT)
    assert refused(client.modify_naming_instance, service, IP, PORT + 1, weight=2.0) == 400
    assert only_host(client, service)["weight"] == 1.0


@pytest.mark.parametrize("weight", [0, 0.01, 0.5, 1, 100.25, 10000])
def test_weights_come_back_exactly(client, service, weight):
    assert client.add_naming_instance(service, IP, PORT, weight=weight)
    found = only_host(client, service)["weight"]
    assert isinstance(found, float) and found == weight


@pytest.mark.parametrize("weight", [-1, 10000.1, float("nan"), float("inf"), "1e309", "abc"])
def test_bad_weights_are_refused_and_nothing_is_stored(client, service, weight):
    assert refused(client.add_naming_instance, service, IP, PORT, weight=weight) == 400
    assert hosts(client, service) == []


@pytest.mark.parametrize("port", [0, 1, 65535])
def test_every_port_is_possible(client, service, port):
    assert client.add_naming_instance(service, IP, port)
    assert only_host(client, service)["port"] == port


@pytest.mark.parametrize("port", [-1, 65536, 70000, "abc", ""])
def test_bad_ports_are_refused(client, service, port):
    assert refused(client.add_naming_instance, service, IP, port) == 400
    assert hosts(client, service) == []


SPECIAL = {
    "plus": "1+,2",
    "percent": "100%",
    "encoded": "a%2Fb",
    "equals": "token=YWJj==",
    "ampersand": "a&b=c#d?e",
    "quotes": "say \"yes\" or 'no'",
    "backslash": "C:\\temp\\",
    "space": " a  b ",
    "lines": "one\ntwo\ttab",
    "accents": "grüße",
    "cjk": "服务 発見",
    "emoji": "🚀",
    "empty": "",
    "json": '{"a":[1,2]}',
    "html": "<b>&amp;</b>",
    "schlüssel": "key beyond ASCII",
    "a.b/c:d": "key with marks",
}


def test_metadata_come_back_byte_for_byte(client, service):
    assert client.add_naming_instance(service, IP, PORT, metadata=SPECIAL)
    assert only_host(client, service)["metadata"] == SPECIAL
    assert client.get_naming_instance(service, IP, PORT)["metadata"] == SPECIAL


def test_metadata_of_an_update_come_back_byte_for_byte(client, service):
    assert client.add_naming_instance(service, IP, PORT)
    assert client.modify_naming_instance(service, IP, PORT, metadata=SPECIAL)
    assert only_host(client, service)["metadata"] == SPECIAL


def test_metadata_in_the_short_form(client, service):
    assert client.add_naming_instance(service, IP, PORT, metadata="a=1,b=2")
    assert only_host(client, service)["metadata"] == {"a": "1", "b": "2"}


def test_metadata_values_become_text(client, service):
    assert client.add_naming_instance(service, IP, PORT, metadata={"n": 8, "x": 1.5, "t": True})
    assert only_host(client, service)["metadata"] == {"n": "8", "x": "1.5", "t": "true"}


def test_malformed_metadata_are_refused(client, service):
    assert refused(client.add_naming_instance, service, IP, PORT, metadata='{"version", "stable"}') == 400
    assert hosts(client, service) == []


def test_large_metadata_are_kept(client, service):
    # Far above the 1024 characters of some servers, below the 64 KiB that are the default here; and below what fits into a
    # request line, since this SDK sends everything in the query.
    metadata = {f"key{i}": "x" * 100 for i in range(40)}
    assert client.add_naming_instance(service, IP, PORT, metadata=metadata)
    assert only_host(client, service)["metadata"] == metadata


def test_clusters_are_told_apart(client, service):
    for cluster, port in [("c1", 1001), ("c1", 1002), ("c2", 1003)]:
        assert client.add_naming_instance(service, IP, port, cluster_name=cluster)

    def ports(clusters):
        answer = client.list_naming_instance(service, clusters=clusters)
        assert answer["clusters"] == clusters
        return sorted(host["port"] for host in answer["hosts"])

    assert ports("c1") == [1001, 1002]
    assert ports("c2") == [1003]
    assert ports("c1,c2") == [1001, 1002, 1003]
    assert ports("none") == []
    assert ports("none,c2") == [1003]
    assert ports("") == [1001, 1002, 1003]


def test_one_address_may_stand_in_two_clusters(client, service):
    for cluster in ["c1", "c2"]:
        assert client.add_naming_instance(service, IP, PORT, cluster_name=cluster)
        assert client.send_heartbeat(service, IP, PORT, cluster_name=cluster)["code"] == 10200
    assert sorted(host["clusterName"] for host in hosts(client, service)) == ["c1", "c2"]
    assert client.remove_naming_instance(service, IP, PORT, cluster_name="c1") is True
    assert only_host(client, service)["clusterName"] == "c2"
    assert client.remove_naming_instance(service, IP, PORT, cluster_name="c1") is True
    assert only_host(client, service)["clusterName"] == "c2"


def test_groups_are_told_apart(client, service):
    assert client.add_naming_instance(service, IP, 1001, group_name="g1")
    assert client.add_naming_instance(service, IP, 1002, group_name="g2")
    for group, port in [("g1", 1001), ("g2", 1002)]:
        answer = client.list_naming_instance(service, group_name=group)
        assert (answer["name"], answer["groupName"]) == (f"{group}@@{service}", group)
        assert [host["port"] for host in answer["hosts"]] == [port]
    assert hosts(client, service) == []
    assert client.remove_naming_instance(service, IP, 1001, group_name="g1") is True
    assert hosts(client, service, group_name="g1") == []
    assert len(hosts(client, service, group_name="g2")) == 1


def test_a_grouped_name_wins_over_the_group_parameter(client, service):
    # Here the SDK sends groupName=DEFAULT_GROUP beside serviceName=g1@@….
    assert client.add_naming_instance(f"g1@@{service}", IP, PORT)
    assert len(hosts(client, service, group_name="g1")) == 1
    assert len(hosts(client, f"g1@@{service}")) == 1
    assert hosts(client, service) == []
    assert client.get_naming_instance(f"g1@@{service}", IP, PORT)["service"] == f"g1@@{service}"
    assert client.send_heartbeat(service, IP, PORT, group_name="g1")["code"] == 10200
    assert len(hosts(client, service, group_name="g1")) == 1


def test_namespaces_are_told_apart(connect, namespace, service):
    one, other = connect(namespace), connect(f"{namespace}-b")
    assert one.add_naming_instance(service, IP, PORT)
    assert len(hosts(one, service)) == 1
    assert hosts(other, service) == []
    assert other.remove_naming_instance(service, IP, PORT) is True
    assert len(hosts(one, service)) == 1


def test_no_namespace_is_public(connect, service):
    without, public = connect(None), connect("public")
    assert without.add_naming_instance(service, IP, PORT)
    assert len(hosts(public, service)) == 1
    assert public.remove_naming_instance(service, IP, PORT) is True
    assert hosts(without, service) == []


def test_host_names_are_kept_to_the_letter(client, service):
    name = "app-7.Cloud.example.internal"
    assert client.add_naming_instance(service, name, PORT)
    assert only_host(client, service)["ip"] == name
    assert client.remove_naming_instance(service, name, PORT) is True
    assert hosts(client, service) == []


@pytest.mark.parametrize(
    "name",
    [
        "providers:com.acme.Foo:1.0.0:",
        "providers:com.acme.Foo::",
        "consumers:com.acme.Foo:1.0:*",
        "providers:io.acme.Greeter$IGreeter::",
    ],
)
def test_names_of_rpc_frameworks_are_kept_to_the_letter(client, name):
    assert client.add_naming_instance(name, IP, PORT)
    answer = client.list_naming_instance(name)
    assert answer["name"] == f"DEFAULT_GROUP@@{name}"
    assert len(answer["hosts"]) == 1
    assert hosts(client, name.rstrip(":*")) == []


def test_a_client_with_a_user_name_logs_in(connect, namespace, service):
    # It does so whether or not the server asks for it, and then sends accessToken with each call.
    client = connect(namespace, username="somebody", password="secret+word")
    assert client.token
    assert client.token_ttl > 10
    assert client.add_naming_instance(service, IP, PORT)
    assert len(hosts(client, service)) == 1


def test_a_persistent_instance_is_never_half_stored(client, service):
    try:
        stored = client.add_naming_instance(service, IP, PORT, ephemeral=False)
    except NacosException:
        stored = False
    assert [host["ephemeral"] for host in hosts(client, service)] == ([False] if stored else [])
