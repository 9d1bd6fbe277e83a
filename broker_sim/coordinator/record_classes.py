"""Classes of the keys and values of a coordinator's records, made from schemas."""

from __future__ import annotations

from json import loads
from typing import TYPE_CHECKING, Any

from broker_sim.protocol.message import make_message_class
from broker_sim.protocol.schema import parse_message, read_schema_lines

if TYPE_CHECKING:
    from broker_sim.protocol.message import Message


class RecordClasses:
    """The classes of one module, beside which `record_schemas.jsonl` has their schemas."""

    def __init__(self, module: str, loader: Any, directory: str) -> None:
        """`loader` and `directory` are the module's, as for `read_schema_lines`."""
        self._module = module
        self._loader = loader
        self._directory = directory
        self._lines: dict[str, str] = {}

    def _schemas(self) -> dict[str, str]:
        if not self._lines:
            self._lines = read_schema_lines(self._loader, self._directory, "record_schemas.jsonl")
        return self._lines

    def make(self, name: str) -> type[Message]:
        """Return a new class for the schema of that name. Raises AttributeError without one."""
        line = self._schemas().get(name)
        if line is None:
            raise AttributeError(f"module {self._module!r} has no attribute {name!r}")
        return make_message_class(parse_message(loads(line)), self._module)

    def names(self) -> list[str]:
        """Return the names of all schemas."""
        return list(self._schemas())
