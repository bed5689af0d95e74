"""One program of each SDK, all in one service of a server of their own; `agents` says what they do."""

import json
import os
import pathlib
import signal
import tempfile
import time
import urllib.parse
import urllib.request

import pytest
import server
from agents import BY_HTTP, COMMANDS, Agent
from waiting import wait_until

NAMESPACE = "crosswise"
SERVICE = "everyone"
# The port of an instance of no SDK.
PROBE = 3001

# What took how long for each SDK, in seconds.
MEASURED = {}


def pytest_terminal_summary(terminalreporter):
    for what, times in MEASURED.items():
        shown = ", ".join(f"{sdk} {'never' if seconds is None else f'{seconds:.1f}'}" for sdk, seconds in times.items())
        terminalreporter.write_line(f"{what}: {shown}")


class Field:
    """The server and its agents, as long as they live."""

    def __init__(self, home, out):
        self.home = home
        self.log = (home / "server.log").open("wb")
        self.binary = os.environ["NOMINA_BINARY"]
        self.http = None
        self.start_server()
        self.out = out
        self.agents = {}

    def start_agents(self):
        """Starts all programs anew, and returns for each SDK after how many seconds it was told of all others."""
        home = pathlib.Path(tempfile.mkdtemp(dir=self.home))
        self.agents = {sdk: self.agent(sdk, 1001 + index, home / sdk) for index, sdk in enumerate(COMMANDS)}
        # Programs that start all at once on a small machine take their time.
        for agent in self.agents.values():
            wait_until(agent.registered, bool, f"{agent.sdk} has registered", 60)
        return self.times(lambda agent: agent.ports() == self.all_ports(), self.agents, 30)

    def agent(self, sdk, port, home):
        return Agent(sdk, port, self.http, self.out, home, NAMESPACE, SERVICE)

    def start_server(self):
        at = self.http and int(self.http.split(":")[1])
        started = server.start(self.binary, self.home, self.log, at=at)
        assert not isinstance(started, str), started
        self.process, self.http, _ = started

    def all_ports(self):
        return {agent.port for agent in self.agents.values()}

    def direct(self, method, **parameters):
        """A call of the server's HTTP API, past the SDKs."""
        query = urllib.parse.urlencode({"namespaceId": NAMESPACE, "serviceName": SERVICE, **parameters})
        request = urllib.request.Request(f"http://{self.http}/nacos/v1/ns/instance{'/list' * (method == 'GET')}?{query}", method=method)
        with server.DIRECT.open(request, timeout=10) as answer:
            return answer.read()

    def listed(self):
        """The ports that the server lists as healthy."""
        return {host["port"] for host in json.loads(self.direct("GET", healthyOnly="true"))["hosts"]}

    def probed(self, within):
        """For each SDK: after how many seconds it was told of a new instance; each must be told then that it is gone."""
        lease = {"preserved.heart.beat.timeout": "600000", "preserved.ip.delete.timeout": "900000"}
        probe = {"ip": "10.1.2.3", "port": PROBE}
        self.direct("POST", **probe, metadata=json.dumps(lease))
        told = self.times(lambda agent: PROBE in agent.ports(), self.agents, within)
        self.direct("DELETE", **probe)
        gone = self.times(lambda agent: PROBE not in agent.ports(), self.agents, 15)
        return {sdk: seconds if gone[sdk] is not None else None for sdk, seconds in told.items()}

    def times(self, accept, sdks, within):
        """For each of `sdks`: after how many seconds `accept(agent)` became true; None if it did not `within` the time."""
        began = time.monotonic()
        found = dict.fromkeys(sdks)
        while None in found.values() and (passed := time.monotonic() - began) < within:
            for sdk, seconds in found.items():
                if seconds is None and accept(self.agents[sdk]):
                    found[sdk] = passed
            time.sleep(0.02)
        return found

    def end(self):
        for agent in self.agents.values():
            agent.end()
        self.process.kill()
        self.process.wait()
        self.log.close()


@pytest.fixture(scope="session")
def field(tmp_path_factory):
    field = Field(tmp_path_factory.mktemp("crosswise"), pathlib.Path(os.environ["NOMINA_SDK_OUT"]))
    yield field
    field.end()


@pytest.fixture(scope="session")
def gathered(field):
    """All have registered; for each SDK how long it took until its program was told of all."""
    MEASURED["told of all"] = field.start_agents()
    return MEASURED["told of all"]


@pytest.fixture(scope="session")
def restarted(field, gathered):
    """The server was killed and started again: for each SDK, when its instance was back, and when it was told of
    a change again."""
    field.process.send_signal(signal.SIGKILL)
    field.process.wait()
    field.start_server()
    back = field.times(lambda agent: agent.port in field.listed(), field.agents, 60)
    told = field.probed(within=60)
    MEASURED.update({"back after a restart": back, "told after a restart": told})
    return back, told


@pytest.fixture(scope="session")
def killed(field, restarted):
    """One program after the other was killed: when its instance was gone, and when all that were left were told."""
    gone, told = {}, {}
    left = sorted(field.agents, key=lambda sdk: sdk in BY_HTTP)
    while left:
        sdk = left.pop(0)
        victim = field.agents[sdk]
        victim.send(signal.SIGKILL)
        gone |= field.times(lambda agent: agent.port not in field.listed(), [sdk], 30)
        others = [other for other in left if victim.port in field.agents[other].ports()]
        told[sdk] = field.times(lambda agent, port=victim.port: port not in agent.ports(), others, 15)
    MEASURED["gone when killed"] = gone
    return gone, told


@pytest.fixture(scope="session")
def frozen(field, killed):
    """All programs were started anew, then stopped, so that they stayed connected, and went on later: when the instance of each
    was gone and back, and when it was told of a change again.

    This comes last, as Python 3.2.0 takes long to settle: it connects twice when it goes on, leaves the good connection for
    the other 5 s later, and registers on that at its next tick of 30 s.
    """
    assert None not in field.start_agents().values()
    for agent in field.agents.values():
        agent.send(signal.SIGSTOP)
    try:
        gone = field.times(lambda agent: agent.port not in field.listed(), field.agents, 40)
    finally:
        for agent in field.agents.values():
            agent.send(signal.SIGCONT)
    back = field.times(lambda agent: agent.port in field.listed(), field.agents, 60)
    told = field.probed(within=60)
    MEASURED.update({"gone when it hangs": gone, "back when it goes on": back, "told when it goes on": told})
    return gone, back, told
