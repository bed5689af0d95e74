"""One program of each SDK, all in one service of a server of their own.

Each is started as `agent SERVER NAMESPACE SERVICE PORT`. It subscribes to the service, registers 10.1.2.3:PORT in it, and prints
`registered` when that is done, and `ports PORT...` whenever it is told of a change: of the instances that are healthy. It
does nothing more until its standard input ends.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import threading
import time
import urllib.parse
import urllib.request

import pytest
import server
from waiting import wait_until

SDK = pathlib.Path(__file__).resolve().parents[1]
NAMESPACE = "crosswise"
SERVICE = "everyone"
# The port of an instance of no SDK.
PROBE = 3001
# The clients whose instances live by beats.
BY_HTTP = ("java_1_4", "node_http")


def java(out, home):
    classes = f"{out / 'classes'}:{(out / 'classpath').read_text()}"
    logging = SDK / "java" / "logging.properties"
    options = ["-XX:TieredStopAtLevel=1", "-Xmx128m", f"-Duser.home={home}", f"-Djava.util.logging.config.file={logging}"]
    return ["java", *options, "-cp", classes, "Agent"]


def node(out, _home):
    # Node finds packages from where a file stands.
    copy = out / "crosswise" / "agent.js"
    copy.parent.mkdir(exist_ok=True)
    shutil.copy(SDK / "node_http" / "agent.js", copy)
    return ["node", str(copy)]


def python(out, _home):
    return [str(out / "venv" / "bin" / "python"), str(SDK / "python_grpc" / "agent.py")]


def go(out, _home):
    return [str(out / "agent")]


def rust(out, _home):
    return [str(out / "debug" / "agent")]


COMMANDS = {
    "java_1_4": java,
    "java_2_0": java,
    "java_2": java,
    "java_3": java,
    "go": go,
    "python_grpc_2_0": python,
    "python_grpc_3": python,
    "rust": rust,
    "node_http": node,
}


# What took how long for each SDK, in seconds.
MEASURED = {}


def pytest_terminal_summary(terminalreporter):
    for what, times in MEASURED.items():
        shown = ", ".join(f"{sdk} {'never' if seconds is None else f'{seconds:.1f}'}" for sdk, seconds in times.items())
        terminalreporter.write_line(f"{what}: {shown}")


class Agent:
    def __init__(self, sdk, port, http, out, home):
        self.sdk = sdk
        self.port = port
        self.lines = []
        home.mkdir()
        self.errors = home / "stderr"
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [*COMMANDS[sdk](out / sdk, home), http, NAMESPACE, SERVICE, str(port)],
                cwd=home,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.split())

    def ports(self):
        """The ports that it was told of last."""
        told = [line[1:] for line in list(self.lines) if line[:1] == ["ports"]]
        return {int(port) for port in told[-1]} if told else set()

    def registered(self):
        assert self.process.poll() is None, f"{self.sdk} has ended: {self.errors.read_text(errors='replace')[-2000:]}"
        return ["registered"] in self.lines

    def send(self, number):
        self.process.send_signal(number)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.thread.join(10)


class Field:
    """The server and its agents, as long as they live."""

    def __init__(self, home, out):
        self.home = home
        self.log = (home / "server.log").open("wb")
        self.binary = os.environ["NOMINA_BINARY"]
        self.http = None
        self.start_server()
        self.agents = {sdk: Agent(sdk, 1001 + index, self.http, out, home / sdk) for index, sdk in enumerate(COMMANDS)}

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
    # Programs that start all at once on a small machine take their time.
    for agent in field.agents.values():
        wait_until(agent.registered, bool, f"{agent.sdk} has registered", 60)
    MEASURED["told of all"] = field.times(lambda agent: agent.ports() == field.all_ports(), field.agents, 30)
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
def frozen(field, restarted):
    """All programs were stopped and stayed connected, and went on later: when the instance of each was gone and back, and when
    it was told of a change again."""
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


@pytest.fixture(scope="session")
def killed(field, frozen):
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
