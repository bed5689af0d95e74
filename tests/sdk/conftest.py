"""What every Python suite gets: the addresses of the server, and names that no other test uses."""

import os
import uuid

import pytest


def address_of(variable):
    address = os.environ.get(variable)
    if not address:
        pytest.exit(f"{variable} is not set: run this through tests/run", returncode=2)
    return address


@pytest.fixture(scope="session")
def http_address():
    """`host:port` of the HTTP API."""
    return address_of("NOMINA_HTTP")


@pytest.fixture(scope="session")
def grpc_address():
    """`host:port` of the gRPC API."""
    return address_of("NOMINA_GRPC")


@pytest.fixture
def namespace():
    """A namespace of this test alone."""
    return f"ns-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def service():
    """A service name of this test alone."""
    return f"svc-{uuid.uuid4().hex[:12]}"
