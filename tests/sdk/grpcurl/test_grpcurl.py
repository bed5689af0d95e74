"""grpcurl against the server's reflection: no files, no code."""

import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
GRPCURL = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target") / "sdk" / "grpcurl" / "grpcurl"
REGISTRY = "nomina.registry.v1.RegistryService"
CATALOG = "nomina.registry.v1.CatalogService"
OPERATOR = "nomina.registry.v1.OperatorService"
CLUSTER = "nomina.registry.v1.ClusterService"


@pytest.fixture
def run(grpc_address):
    """Runs grpcurl; returns what it prints, or fails with what it complains about."""

    def call(*arguments, data=None, options=()):
        command = [str(GRPCURL), "-plaintext", "-max-time", "20", *options]
        if data is not None:
            command += ["-d", data if isinstance(data, str) else json.dumps(data)]
        return subprocess.run([*command, grpc_address, *arguments], capture_output=True, text=True, timeout=60)

    return call


@pytest.fixture
def ok(run):
    def call(*arguments, **more):
        done = run(*arguments, **more)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call


@pytest.fixture
def answer(ok):
    """Calls a method and returns its answer."""
    return lambda method, data=None: json.loads(ok(method, data=data or {}))


def test_list_names_the_services(ok):
    listed = ok("list").split()
    assert {REGISTRY, CATALOG, OPERATOR, CLUSTER, "grpc.health.v1.Health"} <= set(listed)
    assert not [name for name in listed if name.startswith("nomina.peer.")]


def test_list_names_the_methods(ok):
    assert set(ok("list", REGISTRY).split()) == {
        f"{REGISTRY}.{method}"
        for method in (
            "RegisterInstance",
            "DeregisterInstance",
            "UpdateInstance",
            "ResetInstanceOverlay",
            "Beat",
            "StreamBeats",
            "GetInstance",
            "ListInstances",
            "WatchService",
        )
    }


def test_describe_a_service_a_method_and_a_message(ok):
    assert "rpc RegisterInstance ( .nomina.registry.v1.RegisterInstanceRequest )" in ok("describe", REGISTRY)
    assert "returns ( stream .nomina.registry.v1.WatchServiceResponse )" in ok("describe", f"{REGISTRY}.WatchService")
    key = ok("describe", "nomina.registry.v1.InstanceKey")
    assert "string service = 3;" in key and "uint32 port = 6;" in key
    assert "INSTANCE_KIND_EPHEMERAL = 1;" in ok("describe", "nomina.registry.v1.InstanceKind")
    # Messages of imported files, too.
    assert "int64 seconds = 1;" in ok("describe", "google.protobuf.Duration")


def test_everything_can_be_described(ok):
    for service in ok("list").split():
        assert f"service {service.rsplit('.', 1)[-1]} {{" in ok("describe", service)


def test_the_life_of_an_instance(answer, run, namespace, service):
    key = {"namespace": namespace, "service": service, "ip": "10.1.2.3", "port": 8080}
    registered = answer(f"{REGISTRY}/RegisterInstance", {"key": key, "spec": {"weight": 2.5, "metadata": {"zone": "ä+%"}}})
    assert registered["instance"]["cluster"] == "DEFAULT"
    assert registered["instance"]["metadata"] == {"zone": "ä+%"}
    assert registered["instance"]["heartbeatTimeout"] == "15s"

    assert answer(f"{REGISTRY}/Beat", {"key": key}) == {"result": "BEAT_RESULT_RENEWED", "beatInterval": "5s"}
    assert answer(f"{REGISTRY}/GetInstance", {"key": key})["instance"]["weight"] == 2.5
    updated = answer(f"{REGISTRY}/UpdateInstance", {"key": key, "weight": 0})
    assert updated["instance"]["overlay"]["weight"] == 0
    listed = answer(f"{REGISTRY}/ListInstances", {"key": {"namespace": namespace, "service": service}})
    assert [instance["port"] for instance in listed["instances"]] == [8080]
    reset = answer(f"{REGISTRY}/ResetInstanceOverlay", {"key": key})
    assert reset["instance"]["weight"] == 2.5

    answer(f"{REGISTRY}/DeregisterInstance", {"key": key})
    gone = run(f"{REGISTRY}/GetInstance", data={"key": key})
    assert gone.returncode != 0 and "Code: NotFound" in gone.stderr


def test_a_node_that_is_alone_is_its_only_member(answer, run):
    cluster = answer(f"{CLUSTER}/GetCluster")
    assert (cluster["stage"], cluster["ready"], cluster["majority"]) == ("MEMBER_STAGE_READY", True, True)
    (member,) = cluster["members"]
    assert (member["name"], member["own"], member["standing"]) == (cluster["node"], True, "MEMBER_STANDING_UP")
    refused = run(f"{CLUSTER}/EndJoin", data={})
    assert refused.returncode != 0 and "Code: FailedPrecondition" in refused.stderr


def test_an_error_shows_code_field_and_domain(run, namespace, service):
    key = {"namespace": namespace, "service": service, "ip": "10.1.2.3", "port": 70000}
    failed = run(f"{REGISTRY}/RegisterInstance", data={"key": key}, options=["-format-error"])
    assert failed.returncode != 0
    error = json.loads(failed.stderr)
    assert error["code"] == 3
    assert "70000" in error["message"]
    details = {detail["@type"].rsplit("/", 1)[1]: detail for detail in error["details"]}
    assert details["google.rpc.BadRequest"]["fieldViolations"][0]["field"] == "key.port"
    assert details["google.rpc.ErrorInfo"]["domain"] == "nomina"


def test_a_field_that_does_not_exist_is_told_before_it_is_sent(run):
    failed = run(f"{REGISTRY}/GetInstance", data={"colour": "red"})
    assert failed.returncode != 0 and "colour" in failed.stderr


def test_a_method_that_does_not_exist(run):
    failed = run(f"{REGISTRY}/Nonsense", data={})
    assert failed.returncode != 0 and "Nonsense" in failed.stderr


def test_a_stream_of_beats(ok, answer, namespace, service):
    key = {"namespace": namespace, "service": service, "ip": "10.1.2.3", "port": 8080}
    answer(f"{REGISTRY}/RegisterInstance", {"key": key})
    requests = [{"sequence": 1, "targets": [{"key": key, "handle": 1}]}, {"sequence": 2, "renew": [1, 2]}]
    printed = ok(f"{REGISTRY}/StreamBeats", data="\n".join(map(json.dumps, requests)))
    first, second = documents(printed)
    assert (first["sequence"], first["renewed"]) == ("1", 1)
    assert (second["sequence"], second["renewed"]) == ("2", 1)
    assert [(failure["handle"], failure["result"]) for failure in second["failures"]] == [(2, "BEAT_RESULT_INVALID")]


def documents(text):
    """The JSON documents that stand one after the other in a text."""
    decoder, found, rest = json.JSONDecoder(), [], text.strip()
    while rest:
        document, end = decoder.raw_decode(rest)
        found.append(document)
        rest = rest[end:].strip()
    return found


def test_a_watch_prints_the_state_and_the_changes(grpc_address, answer, namespace, service):
    key = {"namespace": namespace, "service": service}
    answer(f"{REGISTRY}/RegisterInstance", {"key": {**key, "ip": "10.1.2.3", "port": 8081}})
    command = [str(GRPCURL), "-plaintext", "-max-time", "30", "-d", json.dumps({"key": key}), grpc_address]
    watch = subprocess.Popen([*command, f"{REGISTRY}/WatchService"], stdout=subprocess.PIPE, text=True)
    try:
        (instance,) = next_document(watch.stdout)["full"]["instances"]
        assert instance["port"] == 8081
        answer(f"{REGISTRY}/RegisterInstance", {"key": {**key, "ip": "10.1.2.3", "port": 8080}})
        (instance,) = next_document(watch.stdout)["delta"]["upserts"]
        assert instance["port"] == 8080
        answer(f"{REGISTRY}/DeregisterInstance", {"key": {**key, "ip": "10.1.2.3", "port": 8080}})
        (address,) = next_document(watch.stdout)["delta"]["removals"]
        assert address["port"] == 8080
    finally:
        watch.kill()
        watch.wait()


def next_document(lines):
    """Reads lines until they are a JSON document; grpcurl prints one as an object that ends with `}` at the left edge."""
    text = ""
    for line in lines:
        text += line
        if line.rstrip() in ("}", "{}"):
            return json.loads(text)
    raise AssertionError(f"the output ended within a document: {text!r}")


def test_catalog_and_operator_calls(answer, namespace, service):
    key = {"namespace": namespace, "service": service}
    created = answer(f"{CATALOG}/CreateService", {"key": key, "settings": {"protectThreshold": 0.5, "metadata": {"owner": "me"}}})
    assert created["service"]["explicit"] is True
    rows = answer(f"{CATALOG}/ListServices", {"namespace": namespace})
    assert [row["key"]["service"] for row in rows["services"]] == [service]
    assert rows["totalSize"] == "1"
    answer(f"{CATALOG}/DeleteService", {"key": key})
    assert answer(f"{CATALOG}/ListServices", {"namespace": namespace}) == {}
    assert answer(f"{CATALOG}/ListNamespaces")["namespaces"][0]["id"] == "public"
    assert answer(f"{OPERATOR}/GetMetricsSummary")["ready"] is True
    assert answer(f"{OPERATOR}/GetSwitches")["switches"]["clientBeatInterval"] == "5s"


def test_health(answer):
    assert answer("grpc.health.v1.Health/Check") == {"status": "SERVING"}
    assert answer("grpc.health.v1.Health/Check", {"service": REGISTRY}) == {"status": "SERVING"}
