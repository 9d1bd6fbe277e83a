"""Generates the static types of message classes, the text of `messages.pyi`."""

import re
from collections.abc import Iterable, Iterator

from broker_sim.protocol.schema import FieldSpec, MessageSpec, StructSpec

PYTHON_TYPES = {"bool": "bool", "float64": "float", "string": "str", "uuid": "bytes", "bytes": "BytesLike"}


def stub_source(specs: Iterable[MessageSpec], version: str) -> str:
    """Return the stub of all `specs`; `version` is the name and version of their jar."""
    classes = [line for spec in specs for line in _class_lines(spec.root, "Message", spec, "")]
    words = set(re.findall(r"\w+", "\n".join(classes)))
    names = [name for name in ("BytesLike", "Message", "Records", "Struct") if name in words]
    lines = [
        f"# Made by tools/update_schemas.py from {version}; do not edit.",
        f"from broker_sim.protocol.message import {', '.join(names)}",
        "",
    ]
    return "\n".join(lines + classes)


def _class_lines(struct: StructSpec, base: str, spec: MessageSpec, indent: str) -> Iterator[str]:
    inner = indent + "    "
    nested = list(spec.structs.values()) if base == "Message" else []
    if not struct.fields and not nested:
        yield f"{indent}class {struct.name}({base}): ..."
        return
    yield f"{indent}class {struct.name}({base}):"
    for nested_struct in nested:
        yield from _class_lines(nested_struct, "Struct", spec, inner)
    for field in struct.fields:
        yield f"{inner}{field.name}: {_type(field, spec)} = ..."
    yield ""


def _type(field: FieldSpec, spec: MessageSpec) -> str:
    """Return a field's type; only in responses may records consist of several pieces."""
    if field.struct:
        element = f"{spec.name}.{field.struct.name}"
    elif field.type == "records":
        element = "BytesLike" if spec.kind == "request" else "Records"
    else:
        element = PYTHON_TYPES.get(field.type, "int")
    whole = f"list[{element}]" if field.is_array else element
    nullable = field.nullable_versions or field.default is None
    return f"{whole} | None" if nullable else whole
