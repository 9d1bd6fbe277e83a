"""The source of a generated function, with the field that each of its lines reads or writes.

So an error can name the field, from the failing line in the traceback. Valid messages have no extra cost.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


def join_path(path: str, name: str) -> str:
    """Return the path of the field `name` of the struct at `path`."""
    return f"{path}.{name}" if path else name


def group_paths(paths: list[str]) -> str:
    """Return one path for fields that are read or written together: the first to the last."""
    return paths[0] if len(paths) == 1 else f"{paths[0]} to {paths[-1]}"


class Source:
    """Lines of Python, with the objects that their names refer to."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.names: dict[str, Any] = {}
        self._lines: list[str] = []
        self._paths: list[str] = []
        self._indent = ""
        self._variables = 0

    @property
    def text(self) -> str:
        """The source so far."""
        return "".join(f"{line}\n" for line in self._lines)

    def line(self, text: str, path: str = "") -> None:
        """Add a line that belongs to the field at `path`."""
        self._lines.append(self._indent + text)
        self._paths.append(path)

    @contextmanager
    def block(self, header: str, path: str = "") -> Iterator[None]:
        """Add `header` and indent what is added inside."""
        self.line(header, path)
        outer, self._indent = self._indent, self._indent + "    "
        yield
        self._indent = outer

    def variable(self, prefix: str) -> str:
        """Return a new unique variable name."""
        self._variables += 1
        return f"{prefix}{self._variables}"

    def name(self, name: str, make: Callable[[], Any]) -> str:
        """Return `name`, which is defined as the result of `make` at its first use."""
        if name not in self.names:
            self.names[name] = make()
        return name

    def compile(self, function: str) -> "CompiledFunction":
        """Return the finished function of that name."""
        code = compile(self.text, f"<{self.title}>", "exec")
        namespace = dict(self.names)
        exec(code, namespace)  # noqa: S102 - the source is made of schema names only
        return CompiledFunction(namespace[function], tuple(self._paths))


class CompiledFunction:
    """A generated function: `call` runs it."""

    __slots__ = ("_paths", "call", "code")

    def __init__(self, call: Callable[..., Any], paths: tuple[str, ...]) -> None:
        self.call = call
        self.code = call.__code__
        self._paths = paths

    def path_of(self, error: BaseException) -> str:
        """Return the path of the field at which `error` was raised, "" if unknown."""
        traceback = error.__traceback__
        while traceback and traceback.tb_frame.f_code is not self.code:
            traceback = traceback.tb_next
        if traceback is None:
            return ""
        variables = traceback.tb_frame.f_locals

        def index(match: re.Match[str]) -> str:
            element, array = (variables.get(name) for name in match.groups())
            places = (i for i, item in enumerate(array or ()) if item is element)
            return f"[{next(places, len(array or ()))}]"

        return re.sub(r"\[(\w+) in (\w+)\]", index, self._paths[traceback.tb_lineno - 1])
