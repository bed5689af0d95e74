"""Beats and what happens without them."""

import json
import os
import signal
import subprocess
import sys

from waiting import holds_for, wait_until

IP = "10.1.2.3"
PORT = 8080


def lease(interval=300, timeout=1500, delete=3000, **more):
    """Metadata that turn an instance's times down, in milliseconds."""
    return {
        "preserved.heart.beat.interval": str(interval),
        "preserved.heart.beat.timeout": str(timeout),
        "preserved.ip.delete.timeout": str(delete),
        **more,
    }


def health(client, service, **options):
    """Health of the instances of a service by port."""
    return {host["port"]: host["healthy"] for host in client.list_naming_instance(service, **options)["hosts"]}


def test_a_beat_is_answered_with_interval_and_code(client, service):
    assert client.add_naming_instance(service, IP, PORT, cluster_name="DEFAULT")
    assert client.send_heartbeat(service, IP, PORT, cluster_name="DEFAULT") == {
        "clientBeatInterval": 5000,
        "code": 10200,
        "lightBeatEnabled": True,
    }


def test_a_beat_is_told_the_interval_of_its_instance(client, service):
    assert client.add_naming_instance(service, IP, PORT, metadata={"preserved.heart.beat.interval": "2000"})
    assert client.send_heartbeat(service, IP, PORT)["clientBeatInterval"] == 2000


def test_a_beat_of_an_unknown_instance_registers_it(client, service):
    metadata = {"zone": "a", "sign": "1+1=2 & 100%"}
    answer = client.send_heartbeat(service, IP, PORT, cluster_name="c1", weight=2.5, metadata=metadata)
    assert answer["code"] == 10200
    (host,) = client.list_naming_instance(service)["hosts"]
    assert (host["ip"], host["port"], host["clusterName"]) == (IP, PORT, "c1")
    assert (host["weight"], host["healthy"], host["enabled"], host["ephemeral"]) == (2.5, True, True, True)
    assert host["metadata"] == metadata


def test_a_beat_never_changes_a_live_instance(client, service):
    assert client.add_naming_instance(service, IP, PORT, cluster_name="c1", weight=2.0, metadata={"v": "1"})
    assert client.modify_naming_instance(service, IP, PORT, cluster_name="c1", weight=5.0, metadata={"v": "2"})
    before = client.list_naming_instance(service)["hosts"]
    answer = client.send_heartbeat(service, IP, PORT, cluster_name="c1", weight=9.0, metadata={"v": "1"})
    assert answer["code"] == 10200
    assert client.list_naming_instance(service)["hosts"] == before
    assert before[0]["metadata"] == {"v": "2"} and before[0]["weight"] == 5.0


def test_the_beat_thread_keeps_an_instance_and_its_end_ends_it(client, service):
    assert client.add_naming_instance(service, IP, PORT, metadata=lease(), heartbeat_interval=0.3)
    holds_for(
        lambda: health(client, service),
        lambda seen: seen == {PORT: True},
        "an instance that beats is listed and healthy, past its delete timeout",
        seconds=4.5,
    )
    for task in client.heartbeats.values():
        task.stop()
    wait_until(lambda: health(client, service), lambda seen: seen == {PORT: False}, "unhealthy without beats")
    wait_until(lambda: health(client, service), lambda seen: seen == {}, "gone without beats")


def test_a_late_beat_makes_it_healthy_again(client, service):
    # A delete timeout beyond the test, so that the one late beat is in time whatever the machine does.
    metadata = lease(timeout=500, delete=60000, zone="a")
    assert client.add_naming_instance(service, IP, PORT, metadata=metadata)
    wait_until(lambda: health(client, service), lambda seen: seen == {PORT: False}, "unhealthy without beats")
    assert client.send_heartbeat(service, IP, PORT)["code"] == 10200
    assert health(client, service) == {PORT: True}
    assert client.list_naming_instance(service)["hosts"][0]["metadata"] == metadata


def test_a_beat_after_removal_registers_with_its_own_data(client, service):
    metadata = lease(timeout=300, delete=600, zone="a")
    assert client.add_naming_instance(service, IP, PORT, metadata=metadata)
    wait_until(lambda: health(client, service), lambda seen: seen == {}, "gone without beats")
    assert client.send_heartbeat(service, IP, PORT, weight=2.0, metadata={"zone": "b"})["code"] == 10200
    (host,) = client.list_naming_instance(service)["hosts"]
    assert (host["weight"], host["metadata"], host["healthy"]) == (2.0, {"zone": "b"}, True)


def test_healthy_only_leaves_out_the_unhealthy(client, service):
    assert client.add_naming_instance(service, IP, 1001, metadata=lease(timeout=500, delete=60000))
    assert client.add_naming_instance(service, IP, 1002)
    wait_until(
        lambda: health(client, service), lambda seen: seen == {1001: False, 1002: True}, "only the silent one is unhealthy"
    )
    assert health(client, service, healthy_only=True) == {1002: True}
    assert health(client, service, healthy_only=False) == {1001: False, 1002: True}


def test_registered_as_unhealthy(client, service):
    assert client.add_naming_instance(service, IP, PORT, healthy=False)
    assert health(client, service) == {PORT: False}
    assert health(client, service, healthy_only=True) == {}
    assert client.send_heartbeat(service, IP, PORT)["code"] == 10200
    assert health(client, service) == {PORT: True}


PROGRAM = """
import json, sys, time
from nacos import NacosClient

address, namespace, service, logs, metadata = sys.argv[1:]
client = NacosClient(address, namespace=namespace, logDir=logs)
assert client.add_naming_instance(service, "10.1.2.3", 8080, metadata=json.loads(metadata), heartbeat_interval=0.3)
print("registered", flush=True)
time.sleep(3600)
"""


def test_a_killed_program_becomes_unhealthy_and_then_goes(client, http_address, namespace, service, tmp_path):
    arguments = [http_address, namespace, service, str(tmp_path / "program"), json.dumps(lease())]
    program = subprocess.Popen([sys.executable, "-c", PROGRAM, *arguments], stdout=subprocess.PIPE, text=True)
    try:
        assert program.stdout.readline() == "registered\n"
        assert health(client, service) == {PORT: True}
    finally:
        os.kill(program.pid, signal.SIGKILL)
        program.wait()
    wait_until(lambda: health(client, service), lambda seen: seen == {PORT: False}, "unhealthy after the death of its program")
    assert health(client, service, healthy_only=True) == {}
    wait_until(lambda: health(client, service), lambda seen: seen == {}, "gone after the death of its program")


def test_a_program_that_leaves_is_gone_at_once_and_for_good(client, service, monkeypatch):
    # A beat on its way while the SDK leaves would register the instance anew, so this leaves between two beats.
    beats = []
    send = client.send_heartbeat
    monkeypatch.setattr(client, "send_heartbeat", lambda *arguments: beats.append(send(*arguments)))
    assert client.add_naming_instance(service, IP, PORT, heartbeat_interval=1.0)
    wait_until(lambda: len(beats), lambda count: count == 1, "the first beat")
    assert client.remove_naming_instance(service, IP, PORT) is True
    assert health(client, service) == {}
    holds_for(lambda: health(client, service), lambda seen: seen == {}, "it stays away", seconds=1.5)


def test_expiry_in_one_namespace_leaves_the_other_alone(connect, namespace, service):
    one, other = connect(namespace), connect(f"{namespace}-b")
    assert one.add_naming_instance(service, IP, PORT, metadata=lease(timeout=300, delete=600))
    assert other.add_naming_instance(service, IP, PORT, metadata=lease(timeout=300, delete=600))
    assert one.remove_naming_instance(service, IP, PORT) is True
    wait_until(lambda: health(other, service), lambda seen: seen == {}, "the other namespace's instance ends by itself")
