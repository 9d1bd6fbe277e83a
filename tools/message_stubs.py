"""Write the static types of the message classes: the text of `messages.pyi`."""

from collections.abc import Iterable, Iterator

from broker_sim.protocol.schema import FieldSpec, MessageSpec, StructSpec

PYTHON_TYPES = {
    "bool": "bool",
    "float64": "float",
    "string": "str",
    "uuid": "bytes",
    "bytes": "BytesLike",
}


def stub_source(specs: Iterable[MessageSpec], version: str) -> str:
    """Return the stub of all `specs`; `version` is that of their kafka-clients."""
    lines = [
        f"# Made by tools/update_schemas.py from kafka-clients {version}; do not edit.",
        "# ruff: noqa: A002 - Kafka has fields named id and type",
        "from broker_sim.protocol.message import BytesLike, Message, Records, Struct",
        "",
    ]
    for spec in specs:
        lines += _class_lines(spec.root, "Message", spec, "")
    return "\n".join(lines)


def _class_lines(struct: StructSpec, base: str, spec: MessageSpec, indent: str) -> Iterator[str]:
    inner = indent + "    "
    nested = list(spec.structs.values()) if base == "Message" else []
    if not struct.fields and not nested:
        yield f"{indent}class {struct.name}({base}): ..."
        return
    yield f"{indent}class {struct.name}({base}):"
    for nested_struct in nested:
        yield from _class_lines(nested_struct, "Struct", spec, inner)
    types = {field.name: _type(field, spec) for field in struct.fields}
    for name, type_name in types.items():
        yield f"{inner}{name}: {type_name}"
    yield f"{inner}def __init__("
    yield f"{inner}    self,"
    for name, type_name in types.items():
        yield f"{inner}    {name}: {type_name} = ...,"
    yield f"{inner}) -> None: ..."
    yield ""


def _type(field: FieldSpec, spec: MessageSpec) -> str:
    """Return a field's type; only responses may carry records in several pieces."""
    if field.struct:
        element = f"{spec.name}.{field.struct.name}"
    elif field.type == "records":
        element = "BytesLike" if spec.kind == "request" else "Records"
    else:
        element = PYTHON_TYPES.get(field.type, "int")
    whole = f"list[{element}]" if field.is_array else element
    nullable = field.nullable_versions or field.default is None
    return f"{whole} | None" if nullable else whole
