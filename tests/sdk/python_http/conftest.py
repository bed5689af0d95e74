"""Clients of `nacos-sdk-python` 0.1.x and 1.0.0, whose HTTP parts are the same."""

from importlib.metadata import version

import pytest
from nacos import NacosClient
from waiting import wait_until


def pytest_report_header():
    return f"nacos-sdk-python {version('nacos-sdk-python')}"


@pytest.fixture
def connect(http_address, tmp_path):
    """Makes clients and takes their threads down again."""
    clients = []

    def make(namespace, **options):
        client = NacosClient(http_address, namespace=namespace, logDir=str(tmp_path), **options)
        clients.append(client)
        return client

    yield make
    for client in clients:
        for task in client.heartbeats.values():
            task.stop()
        stop_timers(client)


def stop_timers(client):
    """A timer that is at work when it is cancelled starts anew: cancel until all are at rest."""
    timers = list(client.subscribe_timer_manager.all_timers().values())

    def busy():
        for timer in timers:
            timer.cancel()
        return [timer.name for timer in timers if timer.alive()]

    wait_until(busy, lambda names: not names, "the SDK's subscription timers end")
    client.stop_subscribe()


@pytest.fixture
def client(connect, namespace):
    """A client in a namespace of this test alone."""
    return connect(namespace)
