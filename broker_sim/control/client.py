"""Talks to a control port; with the standard library alone, so that a command starts fast."""

from __future__ import annotations

import json
import os
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from broker_sim.runtime.sockets import address_text

if TYPE_CHECKING:
    from collections.abc import Mapping

TOKEN_VARIABLE = "BROKER_SIM_CONTROL_TOKEN"  # noqa: S105 - the name of a variable
TIMEOUT_S = 600
"""`roll` waits for the session of one broker after the other: about 12 s each."""


class ControlError(Exception):
    """The cluster refused, or did not answer; the text is for the user."""


class ControlClient:
    """Requests to the control port at `url`; raises ControlError when that is no HTTP address.

    `token` is what the port wants, by default that of BROKER_SIM_CONTROL_TOKEN.
    """

    def __init__(self, url: str, token: str | None = None) -> None:
        self._token = token or os.environ.get(TOKEN_VARIABLE)
        parts = urlsplit(url if "//" in url else f"http://{url}")
        try:
            port = parts.port
        except ValueError:
            port = None
        if parts.scheme != "http" or not parts.hostname or port is None:
            raise ControlError(f"{url!r} is not an address such as http://127.0.0.1:8080")
        self._host = parts.hostname
        self._port = port

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        return headers

    def get(self, path: str) -> Any:
        """Return what GET answers."""
        return self.request("GET", path)

    def request(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Any:
        """Return what the cluster answers: decoded JSON, or text. Raises ControlError."""
        content = json.dumps(body) if body else None
        connection = HTTPConnection(self._host, self._port, timeout=TIMEOUT_S)
        try:
            connection.request(method, path, content, self._headers())
            response = connection.getresponse()
            text = response.read().decode()
            is_json = response.headers.get_content_type() == "application/json"
            answer: Any = json.loads(text) if is_json else text
        except (OSError, HTTPException, ValueError) as error:
            host = address_text(self._host, self._port)
            raise ControlError(
                f"no cluster answers at http://{host} ({error}); "
                'take the address that `broker-sim run` has printed as "control"'
            ) from error
        finally:
            connection.close()
        if response.status != 200:
            raise ControlError(answer["error"] if is_json else _failure(response.status))
        return answer


def _failure(status: int) -> str:
    """Return what to tell of an answer without a reason: something has failed that should not."""
    return f"the cluster has failed (status {status}); what `broker-sim run` prints to stderr says where"
