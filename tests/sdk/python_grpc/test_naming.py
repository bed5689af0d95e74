"""What both versions of the SDK can do. It takes no empty list for true, so one instance stays where changes are told."""

import json

import pytest
from conftest import IP, ports, until
from v2.nacos import BatchRegisterInstanceParam, ListServiceParam, NacosException, RegisterInstanceParam, SubscribeServiceParam


async def test_an_instance_is_read_back_as_registered(connect, service):
    client = await connect()
    metadata = {"zone": "a", "text": 'ä=&+ "quoted" 北京'}
    await client.register(service, 8080, cluster_name="c1", weight=2.5, metadata=metadata)
    [found] = await client.list(service)
    assert (found.ip, found.port, found.clusterName, found.weight, found.metadata) == (IP, 8080, "c1", 2.5, metadata)
    assert found.serviceName == f"DEFAULT_GROUP@@{service}"
    assert found.healthy and found.enabled and found.ephemeral and found.instanceId


async def test_an_acknowledged_registration_is_read_at_once(connect, service):
    client = await connect()

    async def listed():
        return [host["port"] for host in json.loads(await client.direct("GET", "/instance/list", serviceName=service))["hosts"]]

    for port in range(1001, 1006):
        await client.register(service, port)
        assert await listed() == [port]
        await client.deregister(service, port)
        assert await listed() == []


async def test_groups_and_clusters_select(connect, service):
    client, other, reader = await connect(), await connect(), await connect()
    await client.register(service, 1001, group_name="g1", cluster_name="c1")
    await other.register(service, 1002, group_name="g1", cluster_name="c2")
    await other.register(service, 1003, group_name="g2", cluster_name="c1")
    for clusters, wanted in ([], [1001, 1002]), (["c2"], [1002]), (["c1", "c2"], [1001, 1002]):
        assert ports(await reader.list(service, group_name="g1", clusters=clusters)) == wanted
    assert ports(await reader.list(service, group_name="g2", healthy_only=True)) == [1003]
    assert await reader.list(service, group_name="g2", healthy_only=False) == []


async def test_a_subscribed_query_follows_changes(connect, service):
    client, other, reader = await connect(), await connect(), await connect()
    await client.register(service, 1001)
    await other.register(service, 1002)
    assert ports(await reader.list(service, subscribe=True)) == [1001, 1002]
    await client.register(service, 1003)
    await until(lambda: reader.list(service, subscribe=True), lambda found: ports(found) == [1002, 1003], "the change arrives")
    await client.deregister(service, 1003)
    await until(lambda: reader.list(service, subscribe=True), lambda found: ports(found) == [1002], "the removal arrives")


async def test_a_subscription_is_told_added_changed_and_removed(connect, service):
    client, other, reader = await connect(), await connect(), await connect()
    await client.register(service, 1001)
    told = await reader.subscribe(service)
    await told.wait_for_ports(1001)
    await other.register(service, 1002)
    await told.wait_for_ports(1001, 1002)
    await client.register(service, 1001, metadata={"v": "2"})
    await told.wait_for(lambda last: any(instance.metadata.get("v") == "2" for instance in last), "changed metadata")
    await client.deregister(service, 1001)
    await told.wait_for_ports(1002)


async def test_a_subscription_to_a_cluster_is_told_of_that_cluster_alone(connect, service):
    client, second, other, reader = await connect(), await connect(), await connect(), await connect()
    await client.register(service, 1001, cluster_name="c1")
    told = await reader.subscribe(service, clusters=["c1"])
    await told.wait_for_ports(1001)
    await other.register(service, 2001, cluster_name="c2")
    await second.register(service, 1002, cluster_name="c1")
    await told.wait_for_ports(1001, 1002)
    await client.register(service, 1001, cluster_name="c1", metadata={"v": "2"})
    await told.wait_for(lambda last: any(instance.metadata.get("v") == "2" for instance in last), "changed metadata")
    await client.deregister(service, 1001, cluster_name="c1")
    await told.wait_for_ports(1002)
    assert all(instance.clusterName == "c1" for event in told.events for instance in event)


async def test_an_unsubscribed_callback_hears_nothing_more(connect, service):
    client, reader, witness = await connect(), await connect(), await connect()
    await client.register(service, 1001)
    gone = await reader.subscribe(service)
    await gone.wait_for_ports(1001)
    await reader.naming.unsubscribe(SubscribeServiceParam(service_name=service, subscribe_callback=gone))
    heard = len(gone.events)
    told = await witness.subscribe(service)
    await client.register(service, 1002)
    await told.wait_for_ports(1002)
    assert len(gone.events) == heard


async def test_the_server_forgets_a_subscriber_that_unsubscribes(connect, service):
    client, other = await connect(), await connect()

    async def wait_for_subscribers(count):
        async def listed():
            return json.loads(await client.direct("GET", "/service/subscribers", serviceName=service))["count"]

        await until(listed, lambda listed: listed == count, f"there are {count} subscribers")

    gone, _ = await client.subscribe(service), await other.subscribe(service)
    await wait_for_subscribers(2)
    await client.naming.unsubscribe(SubscribeServiceParam(service_name=service, subscribe_callback=gone))
    await wait_for_subscribers(1)


async def test_a_batch_replaces_what_the_client_had_registered(connect, service):
    client, other, reader = await connect(), await connect(), await connect()

    def batch(*wanted):
        instances = [RegisterInstanceParam(service_name=service, ip=IP, port=port) for port in wanted]
        return BatchRegisterInstanceParam(service_name=service, instances=instances)

    await other.register(service, 2001)
    told = await reader.subscribe(service)
    await client.register(service, 1001)
    await told.wait_for_ports(1001, 2001)
    assert await client.naming.batch_register_instances(batch(1002, 1003, 1004))
    await told.wait_for_ports(1002, 1003, 1004, 2001)
    assert await client.naming.batch_deregister_instances(batch(1002, 1004))
    await told.wait_for_ports(1003, 2001)


async def test_what_others_register_by_http_is_told_too(connect, service):
    reader = await connect()
    told = await reader.subscribe(service)
    for port in (1001, 1002):
        await reader.direct("POST", "/instance", serviceName=service, ip=IP, port=port)
    await told.wait_for_ports(1001, 1002)
    await reader.direct("PUT", "/instance", serviceName=service, ip=IP, port=1001, enabled="false")
    await told.wait_for_ports(1002)


async def test_the_service_list_pages(connect, namespace):
    client = await connect()
    for name in "abc":
        await client.register(name, 1001)
    await client.register("d", 1001, group_name="g1")

    async def page(number, size, group="DEFAULT_GROUP"):
        found = await client.naming.list_services(
            ListServiceParam(namespace_id=namespace, group_name=group, page_no=number, page_size=size)
        )
        return found.count, found.services

    assert await page(1, 2) == (3, ["a", "b"])
    assert await page(2, 2) == (3, ["c"])
    assert await page(1, 10, "g1") == (1, ["d"])
    assert await page(1, 10, "none") == (0, [])


async def test_a_persistent_registration_is_refused_clearly(connect, service):
    client = await connect()
    with pytest.raises(NacosException, match="persistent"):
        await client.register(service, 1001, ephemeral=False)
    await client.register(service, 1002)
    assert ports(await client.list(service)) == [1002]


async def test_a_client_with_a_password_works_though_nobody_asks(connect, service):
    client = await connect(username="somebody", password="secret+word & more")
    told = await client.subscribe(service)
    await client.register(service, 1001)
    await told.wait_for_ports(1001)


async def test_the_default_namespace_is_public(connect, service):
    client, named = await connect(namespace=""), await connect(namespace="public")
    await client.register(service, 1001)
    assert ports(await named.list(service)) == [1001]


async def test_the_server_is_healthy(connect):
    client = await connect()
    assert await client.naming.server_health()


async def test_the_end_of_a_client_takes_its_instances(connect, service):
    reader, stays, client = await connect(), await connect(), await connect()
    told = await reader.subscribe(service)
    await stays.register(service, 1001)
    await client.register(service, 1002)
    await told.wait_for_ports(1001, 1002)
    await client.end()
    await told.wait_for_ports(1001)
