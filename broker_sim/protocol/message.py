"""Message classes generated from schemas: slots, constructor, equality, repr, plain values.

Mirrors the `*Data` classes that Kafka's generator writes, with one class for all versions
of a message. Deliberate difference: unknown tagged fields are skipped, not kept.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias, dataclass_transform

from broker_sim.protocol.file_view import FileView
from broker_sim.protocol.schema import FieldSpec, MessageSpec, StructSpec

BytesLike: TypeAlias = bytes | bytearray | memoryview
Records: TypeAlias = BytesLike | Sequence[BytesLike] | FileView
Chunk: TypeAlias = BytesLike | FileView

_SHOWN_BYTES = 32
_HIDDEN = "<hidden>"
_SECRETS = frozenset({"auth_bytes", "hmac", "salted_password"})
"""Fields with credentials, which `repr` hides."""
_FRESH: Any = object()
"""Default that stands for a new list or struct; None stands for null."""


@dataclass_transform(eq_default=False)
class Struct:
    """A message or a struct nested in one; two are equal if their classes and fields are."""

    __slots__: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        default = type(self)()
        fields_text = (
            f"{name}={_HIDDEN if name in _SECRETS else _text(value)}"
            for name in self.__slots__
            if (value := getattr(self, name)) != getattr(default, name)
        )
        return f"{type(self).__qualname__}({', '.join(fields_text)})"


class Message(Struct):
    """A top-level message, as read and written by `codec`."""

    __slots__ = ()

    SPEC: ClassVar[MessageSpec]
    API_KEY: ClassVar[int | None]
    MIN_VERSION: ClassVar[int]
    MAX_VERSION: ClassVar[int]
    FLEXIBLE_VERSIONS_MIN: ClassVar[int | None]
    LATEST_VERSION_UNSTABLE: ClassVar[bool]
    STRUCTS: ClassVar[Mapping[str, type[Struct]]]


def to_dict(message: Struct) -> dict[str, Any]:
    """Return the fields as plain dicts, lists, numbers, strings and bytes."""
    return {name: _plain(getattr(message, name)) for name in message.__slots__}


def error_codes(value: Any) -> Iterator[int]:
    """Yield all error codes anywhere in a response; 0 for fields without an error."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from error_codes(item)
    elif isinstance(value, Struct):
        for name in value.__slots__:
            if name.endswith("error_code"):
                yield getattr(value, name)
            else:
                yield from error_codes(getattr(value, name))


def _plain(value: Any) -> Any:
    match value:
        case Struct():
            return to_dict(value)
        case memoryview() | bytearray():
            return bytes(value)
        case list() | tuple():
            return [_plain(item) for item in value]
        case _:
            return value


def _text(value: Any) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return repr(bytes(value)) if len(value) <= _SHOWN_BYTES else f"<{len(value)} bytes>"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_text, value))}]"
    return repr(value)


def make_message_class(spec: MessageSpec, module: str) -> type[Message]:
    """Return the class of a message; its nested structs are attributes of it.

    The constructor takes the fields positionally, in schema order, or by keyword; missing
    fields get Kafka's default, with a new object for each array and struct.
    """
    structs: dict[str, type[Struct]] = {}
    for struct in spec.structs.values():
        qualified = f"{spec.name}.{struct.name}"
        structs[struct.name] = _make_class(struct, Struct, module, qualified, structs)
    message = _make_class(spec.root, Message, module, spec.name, structs)
    assert issubclass(message, Message)
    message.SPEC = spec
    message.API_KEY = spec.api_key
    message.MIN_VERSION = spec.versions.first
    message.MAX_VERSION = spec.versions.last
    message.FLEXIBLE_VERSIONS_MIN = spec.flexible_versions.first if spec.flexible_versions else None
    message.LATEST_VERSION_UNSTABLE = spec.latest_version_unstable
    message.STRUCTS = structs
    for name, struct_class in structs.items():
        setattr(message, name, struct_class)
    return message


def _make_class(
    spec: StructSpec, base: type[Struct], module: str, qualified_name: str, structs: Mapping[str, type[Struct]]
) -> type[Struct]:
    return type(
        spec.name,
        (base,),
        {
            "__slots__": tuple(field.name for field in spec.fields),
            "__module__": module,
            "__qualname__": qualified_name,
            "__doc__": f"Kafka's {qualified_name}.",
            "__init__": _make_constructor(spec.fields, structs),
        },
    )


def _make_constructor(fields: Iterable[FieldSpec], structs: Mapping[str, type[Struct]]) -> Callable[..., None]:
    """Compile the constructor."""
    parameters = ["self"]
    body = []
    for field in fields:
        name = field.name
        fresh = _fresh(field)
        parameters.append(f"{name}={'FRESH' if fresh else repr(field.default)}")
        given = f"{fresh} if {name} is FRESH else {name}" if fresh else name
        body.append(f"    self.{name} = {given}")
    source = f"def __init__({', '.join(parameters)}):\n" + ("\n".join(body) or "    pass")
    namespace: dict[str, Any] = {"FRESH": _FRESH, **structs}
    exec(source, namespace)  # noqa: S102 - the source is made of schema names only
    constructor: Callable[..., None] = namespace["__init__"]
    return constructor


def _fresh(field: FieldSpec) -> str:
    """Return the expression of a new default value, "" for an immutable default."""
    if field.default != ():
        return ""
    return "[]" if field.is_array or field.struct is None else f"{field.struct.name}()"
