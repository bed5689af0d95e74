"""OperatorService, health, reflection, and what a server says to calls that it does not know."""

import grpc
import pytest
from google.protobuf import descriptor_pool, duration_pb2, field_mask_pb2, message_factory
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

SERVICES = [f"nomina.registry.v1.{name}" for name in ("CatalogService", "ClusterService", "OperatorService", "RegistryService")]
INVALID = grpc.StatusCode.INVALID_ARGUMENT


def test_the_summary_counts(pb, operator, register):
    def summary():
        return operator.GetMetricsSummary(pb.GetMetricsSummaryRequest())

    before = summary()
    assert before.version
    assert before.node
    assert (before.ready, before.not_ready_reason) == (True, "")
    assert before.uptime.ToMilliseconds() > 0
    assert before.write_queue.capacity > 0
    assert 0 < before.eviction_brake.threshold <= 1
    register()
    after = summary()
    assert after.uptime.ToMilliseconds() >= before.uptime.ToMilliseconds()
    assert after.instance_count >= 1 and after.lease_count >= 1 and after.service_count >= 1
    assert after.namespace_count >= 1


def test_switches_can_be_read_and_changed(pb, operator):
    def switches():
        return operator.GetSwitches(pb.GetSwitchesRequest()).switches

    before = switches()
    assert before.client_beat_interval == duration_pb2.Duration(seconds=5)
    assert (before.health_check_enabled, before.push_enabled, before.light_beat_enabled) == (True, True, True)
    # The suites share this server, so this changes only what none of them looks at, and changes it back.
    for wanted in (20, before.push_cache_interval.seconds):
        change = pb.Switches(push_cache_interval=duration_pb2.Duration(seconds=wanted))
        update_mask = field_mask_pb2.FieldMask(paths=["push_cache_interval"])
        answer = operator.UpdateSwitches(pb.UpdateSwitchesRequest(switches=change, update_mask=update_mask))
        assert answer.switches.push_cache_interval.seconds == wanted
        assert answer.switches == switches()
    assert switches() == before


def test_bad_switches_are_refused_by_name(pb, operator, refused):
    def request(paths, **values):
        mask = field_mask_pb2.FieldMask(paths=paths)
        return pb.UpdateSwitchesRequest(switches=pb.Switches(**values), update_mask=mask)

    before = operator.GetSwitches(pb.GetSwitchesRequest())
    short = duration_pb2.Duration(nanos=1)
    for asked, at_fault in [
        (request([], push_enabled=False), "update_mask"),
        (request(["colour"]), "update_mask"),
        (request(["client_beat_interval"], client_beat_interval=short), "switches.client_beat_interval"),
        (request(["default_cache_interval"], default_cache_interval=short), "switches.default_cache_interval"),
        (request(["push_cache_interval"]), "switches.push_cache_interval"),
        (request(["default_instance_kind"], default_instance_kind=9), "switches.default_instance_kind"),
    ]:
        assert refused(operator.UpdateSwitches, asked, INVALID).fields == [at_fault], asked
    assert operator.GetSwitches(pb.GetSwitchesRequest()) == before


@pytest.mark.parametrize("service", ["", *SERVICES])
def test_health_is_serving(channel, service):
    health = health_pb2_grpc.HealthStub(channel)
    answer = health.Check(health_pb2.HealthCheckRequest(service=service), timeout=10)
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


def test_health_of_an_unknown_service_is_not_found(channel):
    with pytest.raises(grpc.RpcError) as caught:
        health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service="none"), timeout=10)
    assert caught.value.code() == grpc.StatusCode.NOT_FOUND


def test_health_can_be_watched(channel):
    call = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(), timeout=10)
    assert next(call).status == health_pb2.HealthCheckResponse.SERVING
    call.cancel()


def test_reflection_lists_the_services(channel):
    found = ProtoReflectionDescriptorDatabase(channel).get_services()
    assert set(SERVICES) <= set(found)
    assert "grpc.health.v1.Health" in found
    assert not [name for name in found if name.startswith("nomina.peer.")]


def test_reflection_describes_what_the_files_describe(pb, channel):
    pool = descriptor_pool.DescriptorPool(ProtoReflectionDescriptorDatabase(channel))
    for service in SERVICES:
        reflected = pool.FindServiceByName(service)
        ours = pb.DESCRIPTOR.pool.FindServiceByName(service)
        assert [(m.name, m.input_type.full_name, m.output_type.full_name) for m in reflected.methods] == [
            (m.name, m.input_type.full_name, m.output_type.full_name) for m in ours.methods
        ]


def test_reflection_says_what_it_does_not_know(channel):
    stub = reflection_pb2_grpc.ServerReflectionStub(channel)
    requests = [reflection_pb2.ServerReflectionRequest(file_containing_symbol="nomina.none")]
    # The protocol has a message for it; some servers, tonic among them, end the stream with the code.
    try:
        (answer,) = stub.ServerReflectionInfo(iter(requests), timeout=10)
        code = answer.error_response.error_code
    except grpc.RpcError as error:
        code = error.code().value[0]
    assert code == grpc.StatusCode.NOT_FOUND.value[0]


def test_every_method_takes_an_empty_request(channel):
    """Whatever it thinks of it, none is missing, none breaks."""
    pool = descriptor_pool.DescriptorPool(ProtoReflectionDescriptorDatabase(channel))
    answered = {}
    for service in SERVICES:
        for method in pool.FindServiceByName(service).methods:
            request = message_factory.GetMessageClass(method.input_type)()
            answer = message_factory.GetMessageClass(method.output_type)
            kind = f"{'stream' if method.client_streaming else 'unary'}_{'stream' if method.server_streaming else 'unary'}"
            call = getattr(channel, kind)(
                f"/{service}/{method.name}",
                request_serializer=type(request).SerializeToString,
                response_deserializer=answer.FromString,
            )
            try:
                result = call(iter([request]) if method.client_streaming else request, timeout=10)
                if method.server_streaming:
                    next(result)
                    result.cancel()
                answered[method.full_name] = grpc.StatusCode.OK
            except grpc.RpcError as error:
                answered[method.full_name] = error.code()
    assert len(answered) == 26
    # A node that runs alone waits for nobody.
    alone = answered.pop("nomina.registry.v1.ClusterService.EndJoin")
    assert alone == grpc.StatusCode.FAILED_PRECONDITION
    assert set(answered.values()) <= {grpc.StatusCode.OK, INVALID}, answered


def test_an_unknown_method_is_unimplemented(channel, refused):
    for path in ("/nomina.registry.v1.RegistryService/Nonsense", "/nomina.none.v1.Nothing/Call"):
        call = channel.unary_unary(path)
        refused(lambda request: call(request, timeout=10), b"", grpc.StatusCode.UNIMPLEMENTED)


def test_broken_messages_are_invalid_and_the_connection_lives_on(pb, channel, registry, service_key, refused):
    call = channel.unary_unary("/nomina.registry.v1.RegistryService/RegisterInstance")
    for broken in (b"\xff\xff\xff", b"\x0a\xff", b"\x0a\x04\x1a\x02\xff\xfe"):
        refused(lambda request: call(request, timeout=10), broken, INVALID)
    assert registry.ListInstances(pb.ListInstancesRequest(key=service_key)).total_size == 0


def test_unknown_fields_are_ignored(pb, channel, key):
    request = pb.RegisterInstanceRequest(key=key()).SerializeToString() + b"\xc2\x3e\x03abc"
    call = channel.unary_unary(
        "/nomina.registry.v1.RegistryService/RegisterInstance", response_deserializer=pb.RegisterInstanceResponse.FromString
    )
    assert call(request, timeout=10).instance.port == 8080


def test_a_message_over_the_limit_is_refused_and_the_connection_lives_on(pb, channel, registry, service_key, refused):
    call = channel.unary_unary("/nomina.registry.v1.RegistryService/RegisterInstance")
    large = b"\x0a\x80\x80\x80\x10" + b"x" * (32 << 20)
    refused(lambda request: call(request, timeout=30), large, grpc.StatusCode.RESOURCE_EXHAUSTED)
    assert registry.ListInstances(pb.ListInstancesRequest(key=service_key)).total_size == 0


def test_compressed_calls_are_understood(pb, registry, key):
    request = pb.RegisterInstanceRequest(key=key(), spec=pb.InstanceSpec(metadata={"k": "x" * 10_000}))
    answer = registry.RegisterInstance(request, compression=grpc.Compression.Gzip)
    assert len(answer.instance.metadata["k"]) == 10_000


def test_many_calls_at_once_are_answered(pb, registry, namespace):
    calls = [
        registry.stub.RegisterInstance.future(
            pb.RegisterInstanceRequest(key=pb.InstanceKey(namespace=namespace, service=f"svc{n % 200}", ip="10.1.2.3", port=n)),
            timeout=30,
        )
        for n in range(400)
    ]
    assert sum(call.result().revision > 0 for call in calls) == 400
    found = registry.ListInstances(pb.ListInstancesRequest(key=pb.ServiceKey(namespace=namespace, service="svc7")))
    assert sorted(instance.port for instance in found.instances) == [7, 207]
