"""Beat and StreamBeats: leases over gRPC."""

import queue

import grpc
import pytest
from google.protobuf import duration_pb2
from waiting import holds_for, wait_until


def seconds(value):
    duration = duration_pb2.Duration()
    duration.FromMilliseconds(round(value * 1000))
    return duration


def lease(interval=0.3, timeout=1.5, delete=3.0):
    return {
        "heartbeat_interval": seconds(interval),
        "heartbeat_timeout": seconds(timeout),
        "delete_timeout": seconds(delete),
    }


@pytest.fixture
def health(listed):
    return lambda: {port: instance.healthy for port, instance in listed().items()}


def test_a_beat_renews(pb, registry, register, key):
    register()
    answer = registry.Beat(pb.BeatRequest(key=key()))
    assert answer.result == pb.BEAT_RESULT_RENEWED
    assert answer.beat_interval == seconds(5)


def test_a_beat_is_told_the_interval_of_its_instance(pb, registry, register, key):
    register(spec=lease(interval=0.7))
    assert registry.Beat(pb.BeatRequest(key=key())).beat_interval == seconds(0.7)


def test_a_beat_of_an_unknown_instance_is_an_answer_and_creates_nothing(pb, registry, register, key, listed):
    assert registry.Beat(pb.BeatRequest(key=key())).result == pb.BEAT_RESULT_UNKNOWN
    register(8081)
    assert registry.Beat(pb.BeatRequest(key=key())).result == pb.BEAT_RESULT_UNKNOWN
    assert list(listed()) == [8081]


def test_beats_keep_an_instance_and_their_end_ends_it(pb, registry, register, key, health):
    register(spec=lease())

    def beat():
        assert registry.Beat(pb.BeatRequest(key=key())).result == pb.BEAT_RESULT_RENEWED
        return health()

    holds_for(beat, lambda seen: seen == {8080: True}, "beats keep it, past its delete timeout", seconds=4.5)
    wait_until(health, lambda seen: seen == {8080: False}, "unhealthy without beats")
    wait_until(health, lambda seen: seen == {}, "gone without beats")


def test_a_late_beat_makes_it_healthy_again(pb, registry, register, key, health):
    register(spec=lease(timeout=0.5, delete=60))
    wait_until(health, lambda seen: seen == {8080: False}, "unhealthy without beats")
    assert registry.Beat(pb.BeatRequest(key=key())).result == pb.BEAT_RESULT_RENEWED
    assert health() == {8080: True}


def test_the_time_since_the_last_beat_starts_anew(pb, registry, register, key):
    register()

    def silence():
        instance = registry.GetInstance(pb.GetInstanceRequest(key=key())).instance
        return instance.since_last_beat.ToMilliseconds()

    wait_until(silence, lambda passed: passed >= 800, "time passes without beats")
    registry.Beat(pb.BeatRequest(key=key()))
    assert silence() < 800


class Beats:
    """A StreamBeats call: requests go in one by one, answers come out one by one."""

    def __init__(self, pb, registry):
        self.pb = pb
        self.requests = queue.Queue()
        self.call = registry.StreamBeats(iter(self.requests.get, None), timeout=60)
        self.sequence = 0

    def send(self, targets=(), **fields):
        self.sequence += 1
        targets = [self.pb.BeatTarget(key=key, handle=handle) for key, handle in targets]
        self.requests.put(self.pb.StreamBeatsRequest(sequence=self.sequence, targets=targets, **fields))
        return self.sequence

    def answer(self, *arguments, **fields):
        sequence = self.send(*arguments, **fields)
        answer = next(self.call)
        assert answer.sequence == sequence
        return answer


@pytest.fixture
def beats(pb, registry):
    stream = Beats(pb, registry)
    yield stream
    stream.requests.put(None)
    stream.call.cancel()


def failures(answer):
    """What was not renewed, by position or handle."""
    return {(failure.WhichOneof("target"), getattr(failure, failure.WhichOneof("target"))): failure for failure in answer.failures}


def test_a_batch_renews_the_known_and_lists_the_others(pb, register, beats, key):
    register(1001), register(1003)
    answer = beats.answer([(key(1001), 0), (key(1002), 0), (key(1003), 0), (key(70000), 0)])
    assert answer.renewed == 2
    assert answer.beat_interval == seconds(5)
    found = failures(answer)
    assert set(found) == {("index", 1), ("index", 3)}
    assert (found["index", 1].result, found["index", 1].detail) == (pb.BEAT_RESULT_UNKNOWN, "")
    assert found["index", 3].result == pb.BEAT_RESULT_INVALID
    assert "70000" in found["index", 3].detail


def test_a_target_without_a_key_is_invalid_and_the_stream_goes_on(pb, register, beats, key):
    register()
    beats.sequence += 1
    request = pb.StreamBeatsRequest(sequence=beats.sequence, targets=[pb.BeatTarget()])
    beats.requests.put(request)
    answer = next(beats.call)
    assert failures(answer)["index", 0].result == pb.BEAT_RESULT_INVALID
    assert beats.answer([(key(), 0)]).renewed == 1


def test_an_empty_request_is_answered(beats):
    answer = beats.answer()
    assert (answer.renewed, list(answer.failures)) == (0, [])


def test_requests_are_answered_in_order(register, beats, key):
    register()
    sent = [beats.send([(key(), 0)]) for _ in range(200)]
    assert [next(beats.call).sequence for _ in sent] == sent


def test_handles_renew_without_names(pb, register, beats, key):
    for port in range(1001, 1011):
        register(port)
    assert beats.answer([(key(port), port - 1000) for port in range(1001, 1011)]).renewed == 10
    assert beats.answer(renew=range(1, 11)).renewed == 10

    answer = beats.answer(renew=[1, 99, 2])
    assert answer.renewed == 2
    assert failures(answer)["handle", 99].result == pb.BEAT_RESULT_INVALID
    assert failures(answer)["handle", 99].detail


def test_a_handle_outlives_its_instance(pb, registry, register, beats, key):
    register()
    assert beats.answer([(key(), 7)]).renewed == 1
    registry.DeregisterInstance(pb.DeregisterInstanceRequest(key=key()))
    assert failures(beats.answer(renew=[7]))["handle", 7].result == pb.BEAT_RESULT_UNKNOWN
    register()
    assert beats.answer(renew=[7]).renewed == 1


def test_an_unknown_target_keeps_its_handle(pb, register, beats, key):
    assert failures(beats.answer([(key(), 7)]))["index", 0].result == pb.BEAT_RESULT_UNKNOWN
    register()
    assert beats.answer(renew=[7]).renewed == 1


def test_handles_can_be_forgotten_and_given_anew(pb, registry, register, beats, key):
    register(1001), register(1002)
    assert beats.answer([(key(1001), 1)]).renewed == 1
    assert failures(beats.answer(forget=[1, 5], renew=[1]))["handle", 1].result == pb.BEAT_RESULT_INVALID
    assert beats.answer([(key(1001), 1)]).renewed == 1
    assert beats.answer([(key(1002), 1)]).renewed == 1
    registry.DeregisterInstance(pb.DeregisterInstanceRequest(key=key(1001)))
    assert beats.answer(renew=[1]).renewed == 1


def test_handles_belong_to_one_stream(pb, registry, register, beats, key):
    register()
    assert beats.answer([(key(), 1)]).renewed == 1
    other = Beats(pb, registry)
    assert failures(other.answer(renew=[1]))["handle", 1].result == pb.BEAT_RESULT_INVALID
    other.call.cancel()
    other.requests.put(None)


def test_stream_beats_keep_instances_and_their_end_ends_them(register, beats, key, health):
    ports = range(1001, 1021)
    for port in ports:
        register(port, spec=lease())
    beats.answer([(key(port), port) for port in ports])

    def beat():
        assert beats.answer(renew=ports).renewed == len(ports)
        return health()

    everyone = {port: True for port in ports}
    holds_for(beat, lambda seen: seen == everyone, "beats keep them, past their delete timeout", seconds=4.5)
    beats.call.cancel()
    wait_until(health, lambda seen: seen == {port: False for port in ports}, "unhealthy without beats")
    wait_until(health, lambda seen: seen == {}, "gone without beats")


def test_closing_the_stream_ends_it_well_and_the_instances_stay(register, beats, key, health):
    register()
    assert beats.answer([(key(), 0)]).renewed == 1
    beats.requests.put(None)
    with pytest.raises(StopIteration):
        next(beats.call)
    assert beats.call.code() == grpc.StatusCode.OK
    assert health() == {8080: True}
