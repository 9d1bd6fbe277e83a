"""Decides which requests the control port accepts: none from a foreign web page in a browser on the machine.

A browser sends requests to loopback for any page. Three things reveal a page:

    Host     contains a name that an attacker's DNS server resolves to 127.0.0.1 (DNS rebinding)
    Origin   contains the page's own address, which browsers send with every write to another origin
    body     forms and simple requests cannot send application/json without asking first

So the host must be known; a write must come from no page or from the port's own page, which has a token that no other
page can read; and the body must be JSON. If the port has a token, every request needs it. Requests that do not come
over loopback are accepted only by a port with a token, because any program that reaches the port can kill brokers.
Kafka has no counterpart.
"""

from __future__ import annotations

import hmac
import secrets
from collections import Counter
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LOOPBACK_NAMES: Final = ("127.0.0.1", "localhost", "::1")
READING_METHODS: Final = ("GET", "HEAD")
DECIDING_HEADERS: Final = ("authorization", "content-type", "host", "origin")
PAGE_TOKEN_HEADER: Final = "X-Broker-Sim-Page"  # noqa: S105 - a header's name
"""The header in which the port's own page sends its token."""
NO_HOST: Final = frozenset("@/?#\\ \t")
"""Characters that are invalid in a Host header."""
BAD_REQUEST: Final = 400
UNAUTHORIZED: Final = 401
FORBIDDEN: Final = 403
UNSUPPORTED_MEDIA_TYPE: Final = 415


class RefusedRequestError(Exception):
    """A refused request, with its HTTP status; the text says what is allowed."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Guard:
    """Decides by the headers of a request whether it is accepted.

    `host` is the host to which the port is bound, `names` are other hosts by which clients may call it. With a
    `token` every request needs `Authorization: Bearer TOKEN`; without one only requests over loopback are accepted.
    The files of the page need no token. With `is_read_only` only reading requests are accepted.
    """

    def __init__(
        self, host: str, names: Iterable[str] = (), token: str | None = None, *, is_read_only: bool = False
    ) -> None:
        self._names = {name.lower() for name in (*LOOPBACK_NAMES, host, *names)}
        self._is_bound_to_all = _is_any_address(host)
        self._token = token
        self.is_read_only = is_read_only
        self.page_token = secrets.token_urlsafe()
        """The token that the port's own page sends with each write."""

    def check_names(self, names: Iterable[str]) -> None:
        """Raise RefusedRequestError if a header of `DECIDING_HEADERS` is repeated.

        `names` are the names of all headers. Two programs could trust different ones of two headers with one name.
        """
        counts = Counter(name.lower() for name in names)
        for name in DECIDING_HEADERS:
            if counts[name] > 1:
                raise RefusedRequestError(BAD_REQUEST, f"the header {name} is repeated; send it once")

    def admit(
        self,
        method: str,
        headers: Mapping[str, str],
        *,
        local_address: str | None = None,
        has_body: bool = False,
        path: str = "",
    ) -> None:
        """Raise RefusedRequestError unless the request is accepted.

        `headers` is a case-insensitive mapping. `local_address` is the address at which the connection was accepted,
        "" if it is no longer known; None stands for loopback.
        """
        self._check_host(headers.get("Host", ""), local_address)
        is_page = method in READING_METHODS and is_page_file(path)
        if self._token is not None and not is_page:
            self._check_token(headers.get("Authorization", ""))
        elif self._token is None and local_address is not None and not _is_loopback(local_address):
            raise RefusedRequestError(
                UNAUTHORIZED,
                "the control port has no token, so it accepts loopback only: start the cluster with "
                "--control-token-file FILE, or with BROKER_SIM_CONTROL_TOKEN set",
            )
        if method not in READING_METHODS:
            if self.is_read_only:
                raise RefusedRequestError(
                    FORBIDDEN, "the control port is read-only; start the cluster without --control-read-only"
                )
            self._check_origin(headers)
            _check_content_type(headers.get("Content-Type"), has_body=has_body)

    def _check_host(self, host_header: str, local_address: str | None) -> None:
        host = _host_of(host_header)
        if host in self._names or (host and host == local_address):
            return
        # A foreign DNS server cannot resolve an address, only a name. Behind a published port of a container
        # # the address is one that this machine does not know.
        if self._is_bound_to_all and _is_address(host):
            return
        raise RefusedRequestError(
            FORBIDDEN,
            f"the host {host_header!r} is not one of the control port's: use "
            f"{', '.join(sorted(self._names))}, or allow it with --control-name",
        )

    def _check_origin(self, headers: Mapping[str, str]) -> None:
        """Raise RefusedRequestError for a request from any page but the port's own, which sends its token."""
        origin, host_header = headers.get("Origin"), headers.get("Host", "")
        if origin is None:
            return
        if origin.lower() != f"http://{host_header.lower()}":
            raise RefusedRequestError(
                FORBIDDEN, f"pages of {origin} may not control the cluster; only requests without Origin may"
            )
        page_token = headers.get(PAGE_TOKEN_HEADER, "").encode(errors="surrogateescape")
        if not hmac.compare_digest(page_token, self.page_token.encode()):
            raise RefusedRequestError(FORBIDDEN, "the page is from an earlier start of the cluster; reload it")

    def _check_token(self, authorization: str) -> None:
        assert self._token is not None
        scheme, _, token = authorization.partition(" ")
        # aiohttp decodes bytes that are not UTF-8 to surrogates.
        token_bytes = token.strip().encode(errors="surrogateescape")
        is_right = hmac.compare_digest(token_bytes, self._token.encode())
        if scheme.lower() != "bearer" or not is_right:
            raise RefusedRequestError(
                UNAUTHORIZED,
                "the control port requires its token: set BROKER_SIM_CONTROL_TOKEN, pass ctl --token, "
                "or send the header Authorization: Bearer TOKEN",
            )


def is_page_file(path: str) -> bool:
    """Whether a path is one of the page's files, which contain no data of the cluster."""
    return path == "/" or (path.startswith("/page/") and "." in path)


def _check_content_type(content_type: str | None, *, has_body: bool) -> None:
    if content_type is None and not has_body:
        return
    if (content_type or "").partition(";")[0].strip().lower() == "application/json":
        return
    raise RefusedRequestError(
        UNSUPPORTED_MEDIA_TYPE, f"the body must be JSON, sent with Content-Type: application/json, not {content_type}"
    )


def _host_of(host_header: str) -> str:
    """Return the host in lower case without its port; "" if it is invalid."""
    if NO_HOST.intersection(host_header):
        return ""
    try:
        return urlsplit(f"//{host_header}").hostname or ""
    except ValueError:
        return ""


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    if not _is_address(host):
        return False
    address = ip_address(host)
    mapped = getattr(address, "ipv4_mapped", None)  # a dual-stack socket shows IPv4 addresses like this
    return bool((mapped or address).is_loopback)


def _is_any_address(host: str) -> bool:
    return _is_address(host) and ip_address(host).is_unspecified
