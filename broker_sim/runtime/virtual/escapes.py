"""The methods that a virtual loop refuses because they would leave virtual time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.runtime.virtual.core.core import Core

_SOCKETS = "real sockets are outside of virtual time; use streams, create_connection or create_server"
_FILES = "pipes and file descriptors are outside of virtual time; feed the program from a task"
_UDP = "the virtual network carries TCP only; replace the part that sends datagrams"
_UNIX = "the virtual network has no Unix sockets; use a host and a port"
_PROCESS = "a subprocess runs in real time; replace it, or test it without the virtual loop"

ADVICE = {
    "add_reader": _FILES,
    "remove_reader": _FILES,
    "add_writer": _FILES,
    "remove_writer": _FILES,
    "connect_read_pipe": _FILES,
    "connect_write_pipe": _FILES,
    "sock_accept": _SOCKETS,
    "sock_recv": _SOCKETS,
    "sock_recv_into": _SOCKETS,
    "sock_recvfrom": _SOCKETS,
    "sock_recvfrom_into": _SOCKETS,
    "sock_sendall": _SOCKETS,
    "sock_sendfile": _SOCKETS,
    "sock_sendto": _SOCKETS,
    "connect_accepted_socket": _SOCKETS,
    "create_datagram_endpoint": _UDP,
    "create_unix_connection": _UNIX,
    "create_unix_server": _UNIX,
    "subprocess_exec": _PROCESS,
    "subprocess_shell": _PROCESS,
}
"""The call to use instead, by event loop method."""

Loop = TypeVar("Loop", bound=type[object])


def _refusal(name: str, advice: str) -> Callable[..., NoReturn]:
    def refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        del args, kwargs
        core: Core = self.core
        core.refuse(f"loop.{name}: {advice}")

    refuse.__name__ = name
    refuse.__doc__ = f"Raise EscapeError: {advice}."
    return refuse


def refuses_escapes(loop: Loop) -> Loop:
    """Decorate a class of loops: each method of `ADVICE` raises EscapeError."""
    for name, advice in ADVICE.items():
        setattr(loop, name, _refusal(name, advice))
    return loop
