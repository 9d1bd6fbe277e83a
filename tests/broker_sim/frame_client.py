"""A client of one broker without a network."""

from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.headers import RequestHeader, decode_response, encode_request
from broker_sim.security import ANONYMOUS


class FrameClient:
    """Hands frames to a broker as a connection does, and keeps what comes back.

    It is the connection of its requests too: `closed` has the reasons for which it was closed.
    """

    may_ask_for_tokens = False
    sends_files = False
    listener = "PLAINTEXT"
    principal = ANONYMOUS
    ip = "127.0.0.1"
    port = 40_000
    peer = "127.0.0.1:9"

    def __init__(self, handle_frame):
        self._handle_frame = handle_frame
        self.closed = []
        self._when_lost = []
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

    def when_lost(self, callback):
        self._when_lost.append(callback)

    def disconnect(self):
        """Let the broker hear that the client has gone."""
        callbacks, self._when_lost = self._when_lost, []
        for callback in callbacks:
            callback()
