"""Programs of the real SDKs, each with one instance in one service.

Each is started as `agent SERVER NAMESPACE SERVICE PORT`; SERVER may be several addresses with commas between them. It
subscribes to the service, registers 10.1.2.3:PORT in it, and prints `registered` when that is done, and `ports PORT...`
whenever it is told of a change: of the instances that are healthy. It does nothing more until its standard input ends.
"""

import os
import pathlib
import shutil
import subprocess
import threading

SDK = pathlib.Path(__file__).resolve().parents[1]
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
    # Another suite may be running it.
    new = copy.with_name(f"agent-{os.getpid()}.js")
    shutil.copy(SDK / "node_http" / "agent.js", new)
    new.replace(copy)
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


class Agent:
    def __init__(self, sdk, port, http, out, home, namespace, service):
        self.sdk = sdk
        self.port = port
        self.lines = []
        home.mkdir()
        self.errors = home / "stderr"
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [*COMMANDS[sdk](out / sdk, home), http, namespace, service, str(port)],
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
