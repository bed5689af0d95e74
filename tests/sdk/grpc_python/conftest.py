"""A client generated from `proto/` by the stock tools, as a program in another language would have one."""

import importlib
import pathlib
import sys
import threading
import types

import grpc
import grpc_tools
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from grpc_tools import protoc
from waiting import wait_until

PROTO = pathlib.Path(__file__).resolve().parents[3] / "proto"
PACKAGE = "nomina/registry/v1"
# Of a single call, in seconds; only a failure waits that long.
TIMEOUT = 10.0


def generate(out):
    """Generates the package's Python modules below `out`."""
    well_known = pathlib.Path(grpc_tools.__file__).parent / "_proto"
    files = sorted(str(path.relative_to(PROTO)) for path in (PROTO / PACKAGE).glob("*.proto"))
    arguments = [f"--proto_path={PROTO}", f"--proto_path={well_known}", f"--python_out={out}", f"--grpc_python_out={out}"]
    assert files and protoc.main(["protoc", *arguments, *files]) == 0, "protoc failed"
    return [pathlib.Path(file).stem for file in files]


@pytest.fixture(scope="session")
def pb(tmp_path_factory):
    """All messages, enum values and stubs of `nomina.registry.v1` by their short names."""
    out = tmp_path_factory.mktemp("generated")
    names = generate(out)
    sys.path.insert(0, str(out))
    found = types.SimpleNamespace()
    for name in names:
        for kind in ("pb2", "pb2_grpc"):
            module = importlib.import_module(f"{PACKAGE.replace('/', '.')}.{name}_{kind}")
            for word in dir(module):
                if not word.startswith("_"):
                    setattr(found, word, getattr(module, word))
    return found


@pytest.fixture(scope="session")
def channel(grpc_address):
    with grpc.insecure_channel(grpc_address) as channel:
        yield channel


class Stub:
    """A stub whose calls have a timeout."""

    def __init__(self, stub):
        self.stub = stub

    def __getattr__(self, method):
        call = getattr(self.stub, method)
        return lambda request, **options: call(request, **{"timeout": TIMEOUT, **options})


@pytest.fixture(scope="session")
def registry(pb, channel):
    return Stub(pb.RegistryServiceStub(channel))


@pytest.fixture(scope="session")
def catalog(pb, channel):
    return Stub(pb.CatalogServiceStub(channel))


@pytest.fixture(scope="session")
def operator(pb, channel):
    return Stub(pb.OperatorServiceStub(channel))


@pytest.fixture
def key(pb, namespace, service):
    """Makes keys of instances of this test's service."""

    def make(port=8080, **fields):
        return pb.InstanceKey(**{"namespace": namespace, "service": service, "ip": "10.1.2.3", "port": port, **fields})

    return make


@pytest.fixture
def service_key(pb, namespace, service):
    return pb.ServiceKey(namespace=namespace, service=service)


@pytest.fixture
def register(pb, registry, key):
    """Registers an instance of this test's service, and returns the answer."""

    def call(port=8080, spec=None, **fields):
        return registry.RegisterInstance(pb.RegisterInstanceRequest(key=key(port, **fields), spec=pb.InstanceSpec(**spec or {})))

    return call


@pytest.fixture
def listed(pb, registry, service_key):
    """Lists this test's service by port."""

    def call(**options):
        answer = registry.ListInstances(pb.ListInstancesRequest(key=service_key, **options))
        return {instance.port: instance for instance in answer.instances}

    return call


class Refusal:
    """A failed call: its code, its message, its details."""

    def __init__(self, error):
        self.code = error.code()
        self.message = error.details()
        status = rpc_status.from_call(error)
        self.details = {} if status is None else {detail.TypeName(): detail for detail in status.details}

    def detail(self, kind):
        """The detail of this kind of message, None if there is none."""
        found = self.details.get(kind.DESCRIPTOR.full_name)
        if found is None:
            return None
        message = kind()
        assert found.Unpack(message)
        return message

    @property
    def fields(self):
        """The fields that are at fault."""
        bad = self.detail(error_details_pb2.BadRequest)
        return [] if bad is None else [violation.field for violation in bad.field_violations]


@pytest.fixture(scope="session")
def refused():
    """Makes a call that must fail, and returns the refusal; every one says in which domain it was made."""

    def call(method, request, code):
        with pytest.raises(grpc.RpcError) as caught:
            answer = method(request)
            if hasattr(answer, "__next__"):
                next(answer)
        refusal = Refusal(caught.value)
        assert refusal.code == code, f"{refusal.code}: {refusal.message}"
        info = refusal.detail(error_details_pb2.ErrorInfo)
        assert info is not None, f"no ErrorInfo with: {refusal.message}"
        assert info.domain == "nomina"
        assert info.reason
        assert refusal.message
        return refusal

    return call


class Watch:
    """Reads a watch on a thread of its own, and keeps the state that its messages tell."""

    def __init__(self, call):
        self.call = call
        self.messages = []
        self.state = None
        self.end = None
        self._partial = {}
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        try:
            for message in self.call:
                self._take(message)
        except grpc.RpcError as error:
            self.end = error

    def _take(self, message):
        if message.HasField("full"):
            self._partial = {(i.cluster, i.ip, i.port): i for i in message.full.instances}
        else:
            for instance in message.delta.upserts:
                self._partial[(instance.cluster, instance.ip, instance.port)] = instance
            for address in message.delta.removals:
                del self._partial[(address.cluster, address.ip, address.port)]
        if not message.more:
            self.state = dict(self._partial)
        self.messages.append(message)

    def ports(self):
        return None if self.state is None else sorted(port for _, _, port in self.state)

    def wait_for(self, accept, what):
        """Waits until the state is one that `accept` takes, and returns it."""

        def read():
            assert self.end is None, f"the watch ended: {self.end}"
            return self.state

        return wait_until(read, lambda state: state is not None and accept(state), what)

    def wait_for_ports(self, *ports):
        return self.wait_for(lambda state: sorted(port for _, _, port in state) == sorted(ports), f"the ports are {ports}")


@pytest.fixture
def watch(pb, registry, service_key):
    """Starts watches of this test's service."""
    watches = []

    def start(**options):
        call = registry.WatchService(pb.WatchServiceRequest(key=service_key, **options), timeout=None)
        watches.append(Watch(call))
        return watches[-1]

    yield start
    for started in watches:
        started.call.cancel()
        started.thread.join(10)
