"""Remote access from a test's own process to objects of the virtual loop, over the virtual network.

A call is one message each way. Plain values are copied; any other object stays where it is, and the test gets a
`RemoteObject` in its place. Each thread of the test has a connection of its own, so a call that waits does not
block other threads.
"""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import inspect
import io
import pickle
import struct
import sys
import threading
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Final

from broker_sim.runtime.system import Socket

if TYPE_CHECKING:
    from collections.abc import Callable

_SIZE: Final = struct.Struct(">I")
_FUNCTIONS: Final = (FunctionType, MethodType, BuiltinFunctionType)
Reference = tuple[int, type]


def _is_value(item: object) -> bool:
    """Whether the test gets a copy of the object instead of a reference."""
    if isinstance(item, _FUNCTIONS):  # a module's function can be imported by name
        return getattr(sys.modules.get(item.__module__ or ""), item.__qualname__, None) is item
    if dataclasses.is_dataclass(item) and not isinstance(item, type):
        return bool(getattr(item, "__dataclass_params__").frozen)  # noqa: B009 - not known to the type checker
    return isinstance(item, type | enum.Enum | tuple | BaseException) or type(item).__module__ == "builtins"


class _Pickler(pickle.Pickler):
    """Writes other objects than values as references; without memo, so that sizes depend on values alone."""

    def __init__(self, file: io.BytesIO, refer: Callable[[Any], Reference | None]) -> None:
        super().__init__(file)
        self.fast = True
        self.persistent_id = refer  # type: ignore[method-assign]

    def reducer_override(self, item: Any) -> Any:
        """Copy errors by their attributes, because `args` of many differ from the arguments of their constructor."""
        return (_error, (type(item), item.args, vars(item))) if isinstance(item, BaseException) else NotImplemented


def _error(kind: type[BaseException], args: tuple[Any, ...], attributes: dict[str, Any]) -> BaseException:
    error = kind.__new__(kind, *args)
    error.args = args
    vars(error).update(attributes)
    return error


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, resolve: Callable[[Reference], Any]) -> None:
        super().__init__(file)
        self.persistent_load = resolve  # type: ignore[method-assign]


def _packed(item: object, refer: Callable[[Any], Reference | None]) -> bytes:
    file = io.BytesIO()
    _Pickler(file, refer).dump(item)
    data = file.getvalue()
    return _SIZE.pack(len(data)) + data


# -- on the loop --------------------------------------------------------------------------------------


class ObjectServer:
    """Serves attribute reads and calls of these objects to a test. Thread rule: the loop's thread."""

    def __init__(self, **objects: object) -> None:
        self._objects: list[object] = list(objects.values())
        self._server: asyncio.Server | None = None

    async def open(self) -> int:
        """Start serving; return the port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def close(self) -> None:
        """Stop serving."""
        assert self._server is not None
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                (size,) = _SIZE.unpack(await reader.readexactly(_SIZE.size))
                number, name, call = self._unpacked(await reader.readexactly(size))
                writer.write(await self._answer(self._objects[number], name, call))
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the test's thread or the run has ended; asyncio would log a cancelled task of this kind as an error
        finally:
            writer.close()

    def _unpacked(self, data: bytes) -> Any:
        return _Unpickler(io.BytesIO(data), lambda reference: self._objects[reference[0]]).load()

    async def _answer(self, target: object, name: str, call: tuple[Any, Any] | None) -> bytes:
        """Return the packed answer to one message: whether it is an error, and the error or the result."""
        try:
            result = getattr(target, name)
            if call is not None:
                result = result(*call[0], **call[1])
                result = await result if inspect.isawaitable(result) else result
            return _packed((False, result), self._refer)
        except Exception as error:  # noqa: BLE001 - every error is raised in the test
            plain = error.with_traceback(None)
            try:
                data = _packed((True, plain), self._refer)
                self._unpacked(data[_SIZE.size :])
            except Exception:  # noqa: BLE001 - an error that cannot be copied
                data = _packed((True, RuntimeError(f"{type(error).__name__}: {error}")), self._refer)
            return data

    def _refer(self, item: object) -> Reference | None:
        if _is_value(item):
            return None
        kind = object if isinstance(item, _FUNCTIONS) else type(item)
        for number, each in enumerate(self._objects):
            if each is item:
                return number, kind
        self._objects.append(item)
        return len(self._objects) - 1, kind


# -- in the test ----------------------------------------------------------------------------------------


class ObjectClient:
    """Reaches the objects of an `ObjectServer`."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._local = threading.local()

    def ask(self, number: int, name: str, call: tuple[Any, Any] | None) -> Any:
        """Return an attribute of an object, or with `call` the result of its method; raises that method's errors."""
        __tracebackhide__ = True
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = Socket()
            connection.connect(("127.0.0.1", self._port))
        try:
            message = _packed((number, name, call), _number_of)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise TypeError(
                f"{name}: {error}. The test runs in a process of its own, so arguments for its cluster must be plain "
                "values; to pass functions that the cluster calls, write the test with async def"
            ) from None
        connection.sendall(message)
        (size,) = _SIZE.unpack(_received(connection, _SIZE.size))
        is_error, result = _Unpickler(io.BytesIO(_received(connection, size)), self._resolve).load()
        if is_error:
            raise result
        return result

    def _resolve(self, reference: Reference) -> RemoteObject:
        return RemoteObject(self, *reference)


def _received(connection: Socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionError("the virtual loop has ended the test")
        data += part
    return data


def _number_of(item: object) -> Reference | None:
    return (item.number, object) if isinstance(item, RemoteObject) else None


class RemoteObject:
    """Stands for an object of the loop: attributes are read, methods called and coroutines awaited there."""

    def __init__(self, client: ObjectClient, number: int, kind: type) -> None:
        self.client = client
        self.number = number
        self.kind = kind

    def __repr__(self) -> str:
        return f"<{self.kind.__name__} of the virtual loop>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if callable(inspect.getattr_static(self.kind, name, None)):

            def call(*args: Any, **kwargs: Any) -> Any:
                __tracebackhide__ = True
                return self.client.ask(self.number, name, (args, kwargs))

            return call
        return self.client.ask(self.number, name, None)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it on the loop."""
        return self.client.ask(self.number, "__call__", (args, kwargs))
