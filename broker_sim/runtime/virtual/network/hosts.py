"""Hosts and addresses of the virtual network, and the socket object that programs get."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
from typing import Any

Address = tuple[str, int]
LOOPBACK = "127.0.0.1"
ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - no machine's interface is bound here
_ALIASES = {"localhost": LOOPBACK, "::1": LOOPBACK, "": ANY_ADDRESS, "::": ANY_ADDRESS}


class VirtualSocket:
    """The parts of a socket that programs use: addresses, and options without effect."""

    family = socket.AF_INET
    type = socket.SOCK_STREAM
    proto = socket.IPPROTO_TCP

    def __init__(self, address: Address, peer: Address | None = None) -> None:
        self._address = address
        self._peer = peer

    def getsockname(self) -> Address:
        """Return host and port of this end."""
        return self._address

    def getpeername(self) -> Address:
        """Return host and port of the other end. Raises OSError if there is none."""
        if self._peer is None:
            raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
        return self._peer

    def setsockopt(self, *_: Any) -> None:
        """Do nothing."""

    def getsockopt(self, *_: Any) -> int:
        """Return 0."""
        return 0

    def setblocking(self, flag: bool) -> None:
        """Do nothing: the virtual network never blocks."""

    def fileno(self) -> int:
        """Return -1, as a closed socket does: there is no file descriptor."""
        return -1

    def __repr__(self) -> str:
        peer = "" if self._peer is None else f" to {self._peer}"
        return f"<{type(self).__name__} {self._address}{peer}>"


class Hosts:
    """Host names and addresses. There is no real name service; each name has one address."""

    def __init__(self) -> None:
        self._addresses: dict[str, str] = dict(_ALIASES)
        self._known: set[str] = set()
        self._made = 0

    def add(self, name: str) -> str:
        """Return the address of a name or address; a new name gets a new one."""
        address = self._addresses.get(name)
        if address is None and _is_address(name):
            address = name
        if address is None:
            self._made += 1
            address = f"10.0.{self._made >> 8}.{self._made & 255}"
            self._addresses[name] = address
        if address != ANY_ADDRESS:
            self._known.add(address)
        return address

    def resolve(self, host: str | bytes | None) -> str:
        """Return the address of a host. Raises `socket.gaierror` if the name is unknown."""
        name = host.decode() if isinstance(host, bytes) else host or ""
        address = self._addresses.get(name)
        if address is None:
            if not _is_address(name):
                raise socket.gaierror(
                    socket.EAI_NONAME, f"Name or service not known: the virtual network has no {name!r}"
                )
            address = name
        return address

    def exists(self, address: str) -> bool:
        """Whether a host has that address; connections to other addresses time out."""
        return address in self._known or address.startswith("127.")


def _is_address(text: str) -> bool:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True
