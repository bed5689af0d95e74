"""Clients of `nacos-sdk-python` 2.0.x and 3.x, which speak gRPC; the calls that both have are the same."""

import asyncio
import contextlib
import inspect
import urllib.parse
import urllib.request
from importlib.metadata import version

import pytest
from v2.nacos import (
    ClientConfigBuilder,
    DeregisterInstanceParam,
    ListInstanceParam,
    NacosNamingService,
    RegisterInstanceParam,
    SubscribeServiceParam,
)
from waiting import DEADLINE, STEP

IP = "10.1.2.3"
VERSION = version("nacos-sdk-python")
# Whatever proxy the environment names.
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def pytest_report_header():
    return f"nacos-sdk-python {VERSION}"


def pytest_pyfunc_call(pyfuncitem):
    """Runs tests that are coroutines, each in a loop of its own; its clients are shut down within."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames

    async def run():
        make = pyfuncitem.funcargs.get("connect")
        try:
            await pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names})
        finally:
            if make is not None:
                for client in make.clients:
                    await client.end()

    asyncio.run(run())
    return True


async def until(read, accept, what, deadline=DEADLINE):
    """Calls `read` until `accept` takes its value, and returns that value; fails with the last value after `deadline` seconds."""
    loop = asyncio.get_running_loop()
    end = loop.time() + deadline
    while True:
        value = read()
        if inspect.isawaitable(value):
            value = await value
        if accept(value):
            return value
        if loop.time() >= end:
            raise AssertionError(f"not within {deadline:g} s: {what}; the last value: {value!r}")
        await asyncio.sleep(STEP)


def ports(instances):
    return sorted(instance.port for instance in instances)


class Told:
    """What a subscription is told, one list of instances for each call."""

    def __init__(self):
        self.events = []

    async def __call__(self, instances):
        self.events.append(list(instances))

    async def wait_for(self, accept, what):
        return (await until(lambda: self.events, lambda events: events and accept(events[-1]), what))[-1]

    async def wait_for_ports(self, *wanted):
        return await self.wait_for(lambda last: ports(last) == list(wanted), f"the ports are {wanted}")


class Client:
    def __init__(self, naming, namespace, http):
        self.naming = naming
        self.namespace = namespace
        self.http = http
        self.ended = False

    async def end(self):
        if not self.ended:
            self.ended = True
            # After it has closed its connection, 2.0.11 waits for something that cannot be waited for.
            with contextlib.suppress(TypeError) if VERSION.startswith("2.0.") else contextlib.nullcontext():
                await self.naming.shutdown()

    async def register(self, service, port, **more):
        assert await self.naming.register_instance(RegisterInstanceParam(service_name=service, ip=IP, port=port, **more))

    async def deregister(self, service, port, **more):
        assert await self.naming.deregister_instance(DeregisterInstanceParam(service_name=service, ip=IP, port=port, **more))

    async def list(self, service, **more):
        more = {"subscribe": False, "healthy_only": None, **more}
        return await self.naming.list_instances(ListInstanceParam(service_name=service, **more))

    async def subscribe(self, service, **more):
        told = Told()
        await self.naming.subscribe(SubscribeServiceParam(service_name=service, subscribe_callback=told, **more))
        return told

    async def direct(self, method, path, **parameters):
        """A call of the server's HTTP API, past the SDK."""
        query = urllib.parse.urlencode({"namespaceId": self.namespace, **parameters})
        request = urllib.request.Request(f"http://{self.http}/nacos/v1/ns{path}?{query}", method=method)

        def call():
            with DIRECT.open(request, timeout=10) as answer:
                return answer.read().decode()

        return await asyncio.to_thread(call)


@pytest.fixture
def connect(http_address, tmp_path, namespace):
    """Makes clients in a namespace of this test alone."""

    async def make(namespace=namespace, **login):
        builder = ClientConfigBuilder().server_address(http_address).namespace_id(namespace)
        builder = builder.log_dir(str(tmp_path)).log_level("ERROR").cache_dir(str(tmp_path))
        for name, value in login.items():
            builder = getattr(builder, name)(value)
        make.clients.append(Client(await NacosNamingService.create_naming_service(builder.build()), namespace, http_address))
        return make.clients[-1]

    make.clients = []
    return make
