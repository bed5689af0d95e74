"""One program of each SDK, all in one service of a cluster of three servers, whose addresses they all know; `agents` says
what they do."""

import http.client
import json
import os
import pathlib
import signal
import threading
import time
import urllib.parse

import pytest
import server
from agents import COMMANDS, Agent
from waiting import wait_until

NAMESPACE = "failover"
SERVICE = "everyone"
# The port of an instance of no SDK.
PROBE = 3001
# Sure to be over: a member is found dead after 5 s, and what its connections published is gone 30 s after that.
FORGOTTEN_AFTER = 40.0


# What took how long for each SDK, in seconds.
MEASURED = {}


def pytest_terminal_summary(terminalreporter):
    for what, times in MEASURED.items():
        shown = ", ".join(f"{sdk} {'never' if seconds is None else f'{seconds:.1f}'}" for sdk, seconds in times.items())
        terminalreporter.write_line(f"{what}: {shown}")


class Field:
    """The servers and the agents, as long as they live."""

    def __init__(self, home, out):
        self.home = home
        self.out = out
        self.log = (home / "server.log").open("wb")
        self.ports = []
        while len(self.ports) < 3:
            port = server.free_http_port()
            # None of the ports of one server is one of another.
            if all(abs(port - other) > 1 and abs(abs(port - other) - 1000) > 1 for other in self.ports):
                self.ports.append(port)
        self.https = [f"{server.HOST}:{port}" for port in self.ports]
        self.processes = [None] * 3
        self.agents = {}
        for index in range(3):
            self.launch(index)
        for index in range(3):
            self.await_ready(index)

    def launch(self, index):
        home = self.home / f"node-{index}"
        home.mkdir(exist_ok=True)
        settings = {
            "server.peer": f"{server.HOST}:{self.ports[index] + 1001}",
            "cluster.advertise": self.https[index],
            "cluster.members": json.dumps(self.https),
            "cluster.secret": "a secret of the tests, 32 bytes long",
        }
        flags = [flag for key, value in settings.items() for flag in ("--set", f"{key}={value}")]
        self.processes[index] = server.launch(os.environ["NOMINA_BINARY"], home, self.log, self.https[index], flags)

    def await_ready(self, index):
        reason = server.wait_until_ready(self.processes[index], self.https[index])
        assert reason is None, reason

    def end_server(self, index, number):
        self.processes[index].send_signal(number)
        self.processes[index].wait(server.GONE_WITHIN)
        self.processes[index] = None

    def living(self):
        return [http for http, process in zip(self.https, self.processes) if process is not None]

    def start_agents(self):
        for index, sdk in enumerate(COMMANDS):
            # Each begins with another server where it takes them in order.
            order = self.https[index % 3 :] + self.https[: index % 3]
            home = self.home / sdk
            self.agents[sdk] = Agent(sdk, 1001 + index, ",".join(order), self.out, home, NAMESPACE, SERVICE)
        for agent in self.agents.values():
            wait_until(agent.registered, bool, f"{agent.sdk} has registered", 60)

    def direct(self, at, method, **parameters):
        """A call of a server's HTTP API, past the SDKs; the body of its answer, None if it does not serve."""
        query = urllib.parse.urlencode({"namespaceId": NAMESPACE, "serviceName": SERVICE, **parameters})
        connection = http.client.HTTPConnection(at, timeout=5)
        try:
            connection.request(method, f"/nacos/v1/ns/instance{'/list' * (method == 'GET')}?{query}")
            answer = connection.getresponse()
            body = answer.read()
            return body if answer.status == 200 else None
        except OSError:
            return None
        finally:
            connection.close()

    def listed(self, at):
        """The ports that a server lists as healthy; None if it does not serve."""
        body = self.direct(at, "GET", healthyOnly="true")
        return body and {host["port"] for host in json.loads(body)["hosts"]}

    def probed(self, within):
        """For each SDK: after how many seconds it was told of a new instance; each must be told then that it is gone."""
        lease = {"preserved.heart.beat.timeout": "600000", "preserved.ip.delete.timeout": "900000"}
        probe = {"ip": "10.1.2.3", "port": PROBE}
        at = self.living()[0]
        assert self.direct(at, "POST", **probe, metadata=json.dumps(lease)) == b"ok"
        told = self.times(lambda agent: PROBE in agent.ports(), within)
        assert self.direct(at, "DELETE", **probe) == b"ok"
        gone = self.times(lambda agent: PROBE not in agent.ports(), 15)
        return {sdk: seconds if gone[sdk] is not None else None for sdk, seconds in told.items()}

    def times(self, accept, within):
        """For each SDK: after how many seconds `accept(agent)` became true; None if it did not `within` the time."""
        began = time.monotonic()
        found = dict.fromkeys(self.agents)
        while None in found.values() and (passed := time.monotonic() - began) < within:
            for sdk, seconds in found.items():
                if seconds is None and accept(self.agents[sdk]):
                    found[sdk] = passed
            time.sleep(0.02)
        return found

    def end(self):
        for agent in self.agents.values():
            agent.end()
        for process in filter(None, self.processes):
            process.kill()
            process.wait()
        self.log.close()


class Gaps:
    """Looks at the lists of all servers until it is left; `longest` is for each SDK the longest time in seconds for which some
    server that served did not list its instance."""

    def __init__(self, field):
        self.field = field
        self.longest = dict.fromkeys(field.agents, 0.0)
        self.going = True
        self.threads = [threading.Thread(target=self._look, args=[at]) for at in field.https]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.going = False
        for thread in self.threads:
            thread.join()

    def _look(self, at):
        since = {}
        while self.going:
            listed = self.field.listed(at)
            now = time.monotonic()
            for sdk, agent in self.field.agents.items():
                if listed is None or agent.port in listed:
                    since.pop(sdk, None)
                else:
                    self.longest[sdk] = max(self.longest[sdk], now - since.setdefault(sdk, now), 0.001)
            time.sleep(0.1)


@pytest.fixture(scope="session")
def field(tmp_path_factory):
    field = Field(tmp_path_factory.mktemp("failover"), pathlib.Path(os.environ["NOMINA_SDK_OUT"]))
    yield field
    field.end()


@pytest.fixture(scope="session")
def gathered(field):
    """All have registered; for each SDK how long it took until its program was told of all."""
    field.start_agents()
    everybody = {agent.port for agent in field.agents.values()}
    MEASURED["told of all"] = field.times(lambda agent: agent.ports() == everybody, 40)
    return MEASURED["told of all"]


@pytest.fixture(scope="session")
def killed(field, gathered):
    """Each server in turn was killed, and started again when all had forgotten it: for how long the instance of each SDK was
    missed, and when it was told of a change after each kill."""
    told = dict.fromkeys(field.agents, 0.0)
    with Gaps(field) as gaps:
        for index in range(3):
            field.end_server(index, signal.SIGKILL)
            time.sleep(FORGOTTEN_AFTER)
            for sdk, seconds in field.probed(within=40).items():
                told[sdk] = None if None in (told[sdk], seconds) else max(told[sdk], seconds)
            field.launch(index)
            field.await_ready(index)
    MEASURED.update({"missed after kill -9": gaps.longest, "told after kill -9": told})
    return gaps.longest, told


@pytest.fixture(scope="session")
def rolled(field, killed):
    """Each server in turn was told to stop, and started again: the same."""
    with Gaps(field) as gaps:
        for index in range(3):
            field.end_server(index, signal.SIGTERM)
            field.launch(index)
            field.await_ready(index)
        time.sleep(FORGOTTEN_AFTER)
    told = field.probed(within=40)
    MEASURED.update({"missed in a rolling restart": gaps.longest, "told after a rolling restart": told})
    return gaps.longest, told
