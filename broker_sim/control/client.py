"""A client of the control port, with the standard library alone, so that commands start fast."""

from __future__ import annotations

import json
import os
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from broker_sim.runtime.sockets import address_text

if TYPE_CHECKING:
    from collections.abc import Mapping

CONTROL_VARIABLE = "BROKER_SIM_CONTROL"
"""Environment variable with the address of the control port."""
TOKEN_VARIABLE = "BROKER_SIM_CONTROL_TOKEN"  # noqa: S105 - the name of a variable
TIMEOUT_S = 600
"""Timeout of a request in seconds; `roll` takes about 12 s for each broker."""


class ControlError(Exception):
    """The cluster refused the request or did not answer; the text is for the user."""


class ControlClient:
    """Sends requests to the control port at `url`. Raises ControlError if that is not an HTTP address.

    `token` is the port's token (default: BROKER_SIM_CONTROL_TOKEN).
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
        """Return the response to GET. Raises ControlError."""
        return self.request("GET", path)

    def request(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Any:
        """Return the cluster's response, decoded from JSON, or as text. Raises ControlError."""
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
                'use the address that `broker-sim run` has printed as "control"'
            ) from error
        finally:
            connection.close()
        if response.status != 200:
            raise ControlError(answer["error"] if is_json else _failure(response.status))
        return answer


def _failure(status: int) -> str:
    """Return the message for an error response without a reason, which is a defect of the cluster."""
    return f"the cluster failed (status {status}); see the stderr of `broker-sim run`"
