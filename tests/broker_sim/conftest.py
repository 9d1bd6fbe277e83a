"""A cluster in this process with its control port, for the tests of everything that steers it."""

import time

import pytest

from broker_sim.cluster.cluster import Cluster
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.headers import RequestHeader, decode_response, encode_request

TIMEOUT_S = 60


@pytest.fixture
def cluster():
    # Followers' fetches stay parked: with Kafka's 500 ms none is, whenever they are sent again.
    with Cluster(3, configs={"replica.fetch.wait.max.ms": "20000"}, control=True) as made:
        yield made


@pytest.fixture
def control_url(cluster):
    return cluster.control_url


@pytest.fixture
def parked_fetch(cluster):
    """Wait until followers' fetches are parked; returns the key that they are watched under."""
    cluster.create_topic("orders", 1, 3)
    deadline = time.monotonic() + TIMEOUT_S
    while not any(purgatory.parked for purgatory in cluster.purgatory()):
        assert time.monotonic() < deadline
    return "orders-0"


class FrameClient:
    """Hands frames to a broker as a connection does, and keeps what comes back.

    It is the connection of its requests too: `closed` has the reasons for which it was closed.
    """

    def __init__(self, handle_frame):
        self._handle_frame = handle_frame
        self.closed = []
        self.received = []
        """All responses, in the order in which they came; one need not wait for another."""

    def send(self, request, version, client_id="test"):
        """Send a request; the list gets its response, now or later (None: ended without one)."""
        header = RequestHeader(ApiKey(request.API_KEY), version, 7, client_id)
        return self.send_frame(b"".join(encode_request(header, request))[4:], header)

    def send_frame(self, frame, header):
        responses = []

        def send_response(chunks):
            if chunks is None:
                responses.append(None)
                return
            sent = b"".join(chunks)
            assert int.from_bytes(sent[:4], "big") == len(sent) - 4
            correlation_id, response = decode_response(header.api_key, header.api_version, sent[4:])
            assert correlation_id == header.correlation_id
            responses.append(response)
            self.received.append(response)

        self._handle_frame(memoryview(frame), self, send_response)
        return responses

    def ask(self, request, version, client_id="test"):
        """Return the response to a request that is answered at once."""
        (response,) = self.send(request, version, client_id)
        return response

    def close(self, reason=""):
        self.closed.append(reason)


@pytest.fixture
def make_frame_client():
    """Make a client of a broker without a network: `make_frame_client(broker.handle_frame)`."""
    return FrameClient
