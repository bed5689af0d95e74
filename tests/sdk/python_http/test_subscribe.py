"""The SDK's subscription: it polls the list and compares whole hosts."""

from nacos.listener import SubscribeListener
from waiting import holds_for, wait_until

IP = "10.1.2.3"


class Recorder:
    """Collects what a subscription tells, as (event, port)."""

    def __init__(self):
        self.events = []

    def __call__(self, event, subscribed):
        self.events.append((event, subscribed.instance["port"]))

    def wait_for(self, *wanted):
        wait_until(lambda: list(self.events), lambda seen: seen == list(wanted), f"the subscription tells {wanted}")


def subscribe(client, service, **options):
    recorder = Recorder()
    client.subscribe(SubscribeListener(recorder, "recorder"), 0.2, service, **options)
    return recorder


def test_a_subscription_tells_added_modified_and_deleted(client, service):
    told = subscribe(client, service)
    assert client.add_naming_instance(service, IP, 1001, metadata={"v": "1"})
    told.wait_for(("ADDED", 1001))
    assert client.add_naming_instance(service, IP, 1002)
    told.wait_for(("ADDED", 1001), ("ADDED", 1002))
    assert client.modify_naming_instance(service, IP, 1001, metadata={"v": "2"})
    told.wait_for(("ADDED", 1001), ("ADDED", 1002), ("MODIFIED", 1001))
    assert client.remove_naming_instance(service, IP, 1002)
    told.wait_for(("ADDED", 1001), ("ADDED", 1002), ("MODIFIED", 1001), ("DELETED", 1002))


def test_beats_alone_tell_nothing(client, service):
    told = subscribe(client, service)
    assert client.add_naming_instance(service, IP, 1001, heartbeat_interval=0.1)
    told.wait_for(("ADDED", 1001))
    holds_for(lambda: list(told.events), lambda seen: seen == [("ADDED", 1001)], "beats are no change", seconds=2)


def test_a_subscription_of_a_group_and_a_cluster_tells_only_of_them(client, service):
    told = subscribe(client, service, group_name="g1", clusters="c1")
    assert client.add_naming_instance(service, IP, 1001, group_name="g1", cluster_name="c2")
    assert client.add_naming_instance(service, IP, 1002, group_name="g2", cluster_name="c1")
    assert client.add_naming_instance(service, IP, 1003, group_name="g1", cluster_name="c1")
    told.wait_for(("ADDED", 1003))


def test_expiry_is_told(client, service):
    told = subscribe(client, service)
    assert client.add_naming_instance(service, IP, 1002)
    told.wait_for(("ADDED", 1002))
    metadata = {
        "preserved.heart.beat.interval": "300",
        "preserved.heart.beat.timeout": "600",
        "preserved.ip.delete.timeout": "2500",
    }
    assert client.add_naming_instance(service, IP, 1001, metadata=metadata)
    told.wait_for(("ADDED", 1002), ("ADDED", 1001), ("MODIFIED", 1001), ("DELETED", 1001))
