"""Kafka's message definitions as immutable values.

Mirrors `MessageSpec`, `StructSpec`, `FieldSpec` and `Versions` of Kafka's generator
module. The definitions are one JSON object per line of `schemas.jsonl`; a line is parsed at the
first use of its message.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from json import loads
from typing import Any, NamedTuple, TypeAlias

FIXED_FORMATS: Mapping[str, str] = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
"""Types of fixed size and their code in the `struct` module (always big-endian)."""

ZERO_UUID = bytes(16)

Default: TypeAlias = bool | float | str | bytes | tuple[()] | None
"""A field's default value; () stands for an empty array or a struct of defaults."""

_LAST_OF_ALL = 32767


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions `first` to `last`, inclusive; empty if last < first."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str | None) -> "Versions":
        """Read Kafka's notation: `3`, `3+`, `3-5`; `none` and None are empty."""
        if not text or text == "none":
            return cls(0, -1)
        if text.endswith("+"):
            return cls(int(text[:-1]), _LAST_OF_ALL)
        first, _, last = text.partition("-")
        return cls(int(first), int(last or first))

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last

    def __bool__(self) -> bool:
        return self.first <= self.last


class FieldSpec(NamedTuple):
    """One field: `type` is a primitive's name or "struct", of the elements if an array."""

    name: str
    type: str
    is_array: bool
    struct: "StructSpec | None"
    versions: Versions
    nullable_versions: Versions
    tag: int | None
    tagged_versions: Versions
    flexible_versions: Versions | None
    default: Default
    ignorable: bool

    def is_tagged_in(self, version: int) -> bool:
        """Return whether the field travels as a tagged field in `version`."""
        return self.tag is not None and version in self.tagged_versions


class StructSpec(NamedTuple):
    """A named sequence of fields, in wire order."""

    name: str
    fields: tuple[FieldSpec, ...]

    def fields_in(self, version: int) -> list[FieldSpec]:
        """Return the untagged fields of `version`, in wire order."""
        return [f for f in self.fields if version in f.versions and not f.is_tagged_in(version)]

    def tagged_in(self, version: int) -> list[FieldSpec]:
        """Return the tagged fields of `version`, by tag."""
        tagged = [f for f in self.fields if version in f.versions and f.is_tagged_in(version)]
        return sorted(tagged, key=lambda field: field.tag or 0)

    def tags_of_other_versions(self, version: int) -> list[int]:
        """Return the numbers of the tagged fields that `version` does not have."""
        tags = (f.tag for f in self.fields if not f.is_tagged_in(version))
        return [tag for tag in tags if tag is not None]

    def absent_in(self, version: int) -> list[FieldSpec]:
        """Return the fields that `version` does not have."""
        return [field for field in self.fields if version not in field.versions]


class MessageSpec(NamedTuple):
    """One message; `structs` are its nested structs by name, inner ones before outer."""

    root: StructSpec
    kind: str
    api_key: int | None
    versions: Versions
    flexible_versions: Versions
    latest_version_unstable: bool
    listeners: tuple[str, ...]
    structs: Mapping[str, StructSpec]

    @property
    def name(self) -> str:
        """Kafka's name, such as `ProduceRequest`."""
        return self.root.name


def snake_case(name: str) -> str:
    """Return Kafka's `TimeoutMs` as `timeout_ms`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def parse_message(definition: Mapping[str, Any]) -> MessageSpec:
    """Return the specification of a stripped definition."""
    structs: dict[str, StructSpec] = {}
    common = {struct["name"]: struct for struct in definition.get("commonStructs", ())}
    root = _parse_struct(definition["name"], definition.get("fields", ()), common, structs)
    return MessageSpec(
        root=root,
        kind=definition["type"],
        api_key=definition.get("apiKey"),
        versions=Versions.parse(definition["validVersions"]),
        flexible_versions=Versions.parse(definition.get("flexibleVersions")),
        latest_version_unstable=definition.get("latestVersionUnstable", False),
        listeners=tuple(definition.get("listeners", ())),
        structs=structs,
    )


def message_names() -> list[str]:
    """Return the names of all known messages."""
    return list(_lines())


@cache
def load_message(name: str) -> MessageSpec:
    """Return the specification of the message `name`. Raises KeyError if there is none."""
    return parse_message(loads(_lines()[name]))


@cache
def _lines() -> dict[str, str]:
    """Return the unparsed line of each message."""
    return read_schema_lines(__spec__.loader, os.path.dirname(__file__), "schemas.jsonl")  # noqa: PTH120 - see below


def read_schema_lines(loader: Any, directory: str, file_name: str) -> dict[str, str]:
    """Return the unparsed lines of a file next to a module, by the name at the start of each line.

    `loader` is the module's, so that the package also works inside an archive. Executors of Spark name
    the archive ./NAME, and the loader needs exactly that prefix, which Path would remove.
    """
    text: str = loader.get_data(os.path.join(directory, file_name)).decode()  # noqa: PTH118 - as above
    start = len('{"name":"')
    return {line[start : line.index('"', start)]: line for line in text.splitlines()}


def _parse_struct(
    name: str,
    definitions: Iterable[Mapping[str, Any]],
    common: Mapping[str, Mapping[str, Any]],
    structs: dict[str, StructSpec],
) -> StructSpec:
    """Return one struct, after adding its nested structs to `structs`."""
    fields = []
    for definition in definitions:
        type_name = definition["type"].removeprefix("[]")
        if type_name[0].isupper() and type_name not in structs:
            inner = definition.get("fields") or common[type_name]["fields"]
            structs[type_name] = _parse_struct(type_name, inner, common, structs)
        fields.append(_parse_field(definition, structs.get(type_name)))
    return StructSpec(name, tuple(fields))


def _parse_field(definition: Mapping[str, Any], struct: StructSpec | None) -> FieldSpec:
    type_name = definition["type"]
    is_array = type_name.startswith("[]")
    kind = "struct" if struct else type_name.removeprefix("[]")
    tagged = Versions.parse(definition.get("taggedVersions"))
    flexible = definition.get("flexibleVersions")
    return FieldSpec(
        name=snake_case(definition["name"]),
        type=kind,
        is_array=is_array,
        struct=struct,
        versions=Versions.parse(definition["versions"]) if "versions" in definition else tagged,
        nullable_versions=Versions.parse(definition.get("nullableVersions")),
        tag=definition.get("tag"),
        tagged_versions=tagged,
        flexible_versions=None if flexible is None else Versions.parse(flexible),
        default=_parse_default(kind, is_array, definition.get("default")),
        ignorable=definition.get("ignorable", False),
    )


def _parse_default(kind: str, is_array: bool, default: Any) -> Default:
    text = "" if default is None else str(default)
    if text == "null" or (kind == "records" and not is_array):
        return None
    if is_array or kind == "struct":
        return ()
    return _PARSERS.get(kind, _parse_integer)(text)


def _parse_integer(text: str) -> int:
    return int(text or "0", 0)


_PARSERS: Mapping[str, Callable[[str], Default]] = {
    "bool": lambda text: text.lower() == "true",
    "bytes": str.encode,
    "float64": lambda text: float(text or "0"),
    "string": str,
    "uuid": lambda _: ZERO_UUID,
}
