"""Servers of the tests: started on free ports of the loopback interface, stopped, and started again where they were."""

import os
import random
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

HOST = "127.0.0.1"
# gRPC stands 1000 above HTTP, peers 1001.
OFFSETS = (0, 1000, 1001)
# Below the ports that Linux hands out for outgoing connections, so that none of those takes a port between probe and bind.
HTTP_PORTS = range(20000, 31000)
READY_WITHIN = 20.0
# The server promises to be gone 10 s after SIGTERM.
GONE_WITHIN = 12.0
# A page of this origin takes part in the gRPC-Web suite.
SETTINGS = ["--set", 'http.web_origins=["http://console.example"]']
START_ATTEMPTS = 5
# Whatever proxy the environment names.
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def is_free(port):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do: a connection of an earlier run in TIME_WAIT does not make the port busy.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def free_http_port():
    for port in random.sample(HTTP_PORTS, len(HTTP_PORTS)):
        if all(is_free(port + offset) for offset in OFFSETS):
            return port
    raise SystemExit("with_server: no free ports")


def readiness(http):
    """What the server says about its readiness, None once it is ready."""
    try:
        with DIRECT.open(f"http://{http}/nacos/v1/console/health/readiness", timeout=2) as answer:
            answer.read()
            return None
    except urllib.error.HTTPError as error:
        return f"{error.code} {error.read(500).decode(errors='replace')}"
    except OSError as error:
        return str(error)


def wait_until_ready(server, http):
    """None once the server is ready; else the last that it said, when it has ended or the time is over."""
    deadline = time.monotonic() + READY_WITHIN
    reason = "no answer yet"
    while server.poll() is None and time.monotonic() < deadline:
        reason = readiness(http)
        if reason is None and server.poll() is None:
            return None
        time.sleep(0.02)
    return reason or "ended"


def launch(binary, home, log, http, settings=SETTINGS):
    """The process of a server whose HTTP port is at `http`."""
    host, port = http.rsplit(":", 1)
    # Settings come from flags alone: no nomina.toml in the working directory, nothing of the caller's environment.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NOMINA_")}
    return subprocess.Popen(
        [binary, "serve", "--http", http, "--grpc", f"{host}:{int(port) + 1000}", "--data-dir", os.path.join(home, "data"), *settings],
        cwd=home,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def start(binary, home, log, at=None):
    """A ready server as (process, http, grpc), at the HTTP port `at` if there is one, or the reason why there is none."""
    reason = "never tried"
    for _ in range(START_ATTEMPTS):
        port = at or free_http_port()
        http, grpc = f"{HOST}:{port}", f"{HOST}:{port + 1000}"
        server = launch(binary, home, log, http)
        try:
            reason = wait_until_ready(server, http)
        except BaseException:
            server.kill()
            raise
        if reason is None:
            return server, http, grpc
        if server.poll() is None:
            server.kill()
            server.wait()
            return f"not ready after {READY_WITHIN:.0f} s: {reason}"
        reason = f"ended with code {server.returncode} before it was ready"
        if all(is_free(port + offset) for offset in OFFSETS):
            return reason
        # Somebody else took a port between probe and bind: try others.
    return reason


def stop(server):
    """Why the server did not end as it should; None if it did."""
    if server.poll() is not None:
        return f"ended with code {server.returncode} while it was in use"
    server.send_signal(signal.SIGTERM)
    try:
        code = server.wait(GONE_WITHIN)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
        return f"still there {GONE_WITHIN:.0f} s after SIGTERM"
    return None if code == 0 else f"ended with code {code} after SIGTERM"
