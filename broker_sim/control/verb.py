"""Verbs: operations on a cluster, declared once and offered by every face, over HTTP and on the command line.

A verb is a method marked with `verb` (returns at once) or `waiting_verb` (a coroutine). It is written once, in
`Verbs`; each face (`Cluster`, `AsyncCluster`, `VirtualCluster`) decides in `bind_verb` how a call reaches the
cluster: directly on the cluster's event loop, from another thread, or by stepping a virtual loop. On a blocking
face a waiting verb is an ordinary method that returns when the wait is over. `address` is the verb's HTTP method
and path. Kafka has no counterpart.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, Generic, NamedTuple, ParamSpec, Self, TypeVar, overload
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

P = ParamSpec("P")
T = TypeVar("T")


class HttpAddress(NamedTuple):
    """HTTP method and path of a verb. `{name}` in the path stands for a parameter of the verb."""

    method: str
    path: str
    fields: Mapping[str, str] = {}
    """Names of fields in the JSON body, by parameter, if they differ."""


class HttpRequest(NamedTuple):
    """A call of a verb as an HTTP request to a control port."""

    method: str
    path: str
    body: dict[str, Any]


class Face:
    """An object with the verbs of a cluster."""

    def bind_verb(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that calls the verb's method on the cluster with its arguments."""
        raise NotImplementedError


class AsyncFace(Face):
    """A face on the cluster's own event loop: waiting verbs are awaited."""


class BlockingFace(Face):
    """A face for code that is not asynchronous: waiting verbs return when the wait is over."""


class Verb(Generic[P, T]):
    """A verb that returns at once."""

    waits: ClassVar[bool] = False

    def __init__(self, method: Callable[..., Any], address: HttpAddress | None = None) -> None:
        self.method = method
        self._address = address
        self.__doc__ = method.__doc__
        self.__wrapped__ = method  # so that `help` and `inspect.signature` show the parameters

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __call__(self, face: Face, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Call the verb on a face: `Cluster.pause(cluster, 2)` is `cluster.pause(2)`."""
        return face.bind_verb(self.method)(*args, **kwargs)

    @overload
    def __get__(self, face: None, owner: type) -> Self: ...
    @overload
    def __get__(self, face: Face, owner: type) -> Callable[P, T]: ...
    def __get__(self, face: Face | None, owner: type) -> Self | Callable[P, T]:
        return self if face is None else face.bind_verb(self.method)

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """The parameters without `self`, in order; their annotations are texts."""
        parameters = dict(inspect.signature(self.method).parameters)
        del parameters["self"]
        return parameters

    def annotation(self, name: str) -> str:
        """Return the annotation of a parameter as written in the source."""
        return str(self.parameters[name].annotation)

    @property
    def word(self) -> str:
        """The verb on the command line and in paths: its name with dashes."""
        return self.name.replace("_", "-")

    @property
    def is_for_brokers(self) -> bool:
        """Whether the first parameter is a broker's id."""
        return next(iter(self.parameters), None) == "broker_id"

    @property
    def address(self) -> HttpAddress:
        """The verb's HTTP address (default: POST to `/brokers/{broker_id}/WORD` or `/WORD`)."""
        if self._address is not None:
            return self._address
        path = f"/brokers/{{broker_id}}/{self.word}" if self.is_for_brokers else f"/{self.word}"
        return HttpAddress("POST", path)

    def request(self, values: Mapping[str, Any]) -> HttpRequest:
        """Return the HTTP request that calls the verb with these arguments by name."""
        address = self.address
        path, remaining = address.path, dict(values)
        for name in self.parameters:
            if f"{{{name}}}" in path:
                value = remaining.pop(name, None)
                path = path.replace(f"/{{{name}}}", "" if value is None else f"/{quote(str(value), safe='')}")
        body = {address.fields.get(name, name): value for name, value in remaining.items()}
        return HttpRequest(address.method, path, body)


class WaitingVerb(Verb[P, T]):
    """A verb that is a coroutine on the cluster's event loop."""

    waits = True

    @overload  # type: ignore[override]
    def __get__(self, face: None, owner: type) -> Self: ...
    @overload
    def __get__(self, face: AsyncFace, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    @overload
    def __get__(self, face: BlockingFace, owner: type) -> Callable[P, T]: ...
    def __get__(self, face: Face | None, owner: type) -> Any:
        return self if face is None else face.bind_verb(self.method)


def verb(
    method: str = "POST", path: str | None = None, fields: Mapping[str, str] | None = None
) -> Callable[[Callable[Concatenate[Any, P], T]], Verb[P, T]]:
    """Mark a method as a verb that returns at once."""
    address = None if path is None else HttpAddress(method, path, fields or {})
    return lambda function: Verb(function, address)


def waiting_verb(
    method: str = "POST", path: str | None = None
) -> Callable[[Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]], WaitingVerb[P, T]]:
    """Mark a coroutine as a verb that waits."""
    address = None if path is None else HttpAddress(method, path)
    return lambda function: WaitingVerb(function, address)


def verbs_of(face: type) -> dict[str, Verb[..., Any]]:
    """Return all verbs of a class by name, in the order of their definitions."""
    verbs: dict[str, Verb[..., Any]] = {}
    for base in reversed(face.__mro__):
        verbs |= {name: item for name, item in vars(base).items() if isinstance(item, Verb)}
    return verbs
