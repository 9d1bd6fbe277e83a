"""Compile the encoder of one version of one message.

The generated function collects small pieces of bytes in `out` and joins them; large
records and bytes go by reference into `chunks` between the joined pieces. Neighbouring
fields of fixed size are packed by one precompiled `struct.Struct`. Kafka: the `write`
methods that `MessageDataGenerator` writes, with its rules: a field that the version does
not have must have its default unless it is ignorable, and a tagged field is written only
if it differs from its default.
"""

from struct import Struct

from broker_sim.protocol import primitives
from broker_sim.protocol.errors import ProtocolError
from broker_sim.protocol.message import Message
from broker_sim.protocol.schema import FIXED_FORMATS, FieldSpec, MessageSpec, StructSpec
from broker_sim.protocol.source import CompiledFunction, Source, group_paths, join_path


def compile_encoder(message: type[Message], version: int) -> CompiledFunction:
    """Return `encode(message) -> chunks`, which raises on values that do not fit."""
    return _EncodeCompiler(message, version).compile()


class _EncodeCompiler:
    def __init__(self, message: type[Message], version: int) -> None:
        self._spec: MessageSpec = message.SPEC
        self._version = version
        self._is_flexible = version in self._spec.flexible_versions
        self._out = Source(f"encode {self._spec.name} v{version}")
        self._out.names |= {
            "ProtocolError": ProtocolError,
            "append_bytes": primitives.append_bytes,
            "checked_uuid": primitives.checked_uuid,
            "join_uuids": primitives.join_uuids,
            "size_of": primitives.size_of,
            "string_lengths": primitives.string_lengths,
            # Not as a method: CPython 3.11 crashes where that meets the class `str` as a value.
            "utf_8": str.encode,
            "varints": primitives.varints,
        }
        self._formats: list[str] = []
        self._values: list[str] = []
        self._run_paths: list[str] = []
        self._pieces: list[tuple[str, str]] = []

    def compile(self) -> CompiledFunction:
        out = self._out
        with out.block("def encode(m):"):
            out.line("out = []")
            out.line("chunks = []")
            self._struct(self._spec.root, "m", "")
            self._flush()
            with out.block("if out:"):
                out.line('chunks.append(b"".join(out))')
            out.line("return chunks")
        return out.compile("encode")

    # Pieces: expressions of bytes that are appended together, in order

    def _fixed(self, code: str, value: str, path: str) -> None:
        """Write one fixed-size value together with its neighbours."""
        self._formats.append(code)
        self._values.append(value)
        self._run_paths.append(path)

    def _piece(self, expression: str, path: str) -> None:
        self._end_run()
        self._pieces.append((expression, path))

    def _end_run(self) -> None:
        """Turn the collected run into a piece."""
        if not self._formats:
            return
        run = "".join(self._formats)
        if set(self._values) == {"0"} and set(self._formats) == {"B"}:
            expression = repr(bytes(len(run)))
        else:
            packer = self._out.name(f"pack_{run.replace('?', 't')}", lambda: Struct(f">{run}").pack)
            expression = f"{packer}({', '.join(self._values)})"
        self._pieces.append((expression, group_paths(self._run_paths)))
        self._formats, self._values, self._run_paths = [], [], []

    def _flush(self) -> None:
        """Emit the code that appends the collected pieces."""
        self._end_run()
        if len(self._pieces) == 1:
            expression, path = self._pieces[0]
            self._out.line(f"out.append({expression})", path)
        elif self._pieces:
            with self._out.block("out += ("):
                for expression, path in self._pieces:
                    self._out.line(f"{expression},", path)
            self._out.line(")")
        self._pieces = []

    # Structs and fields

    def _struct(self, struct: StructSpec, value: str, path: str) -> None:
        """Write the fields of the struct in the variable `value`."""
        for field in struct.absent_in(self._version):
            if not field.ignorable:
                self._flush()
                where = join_path(path, field.name)
                with self._out.block(f"if {_non_default(field, f'{value}.{field.name}')}:", where):
                    message = f"version {self._version} cannot carry it and it has not its default"
                    self._out.line(f'raise ProtocolError("{message}")', where)
        for field in struct.fields_in(self._version):
            self._field(field, f"{value}.{field.name}", join_path(path, field.name))
        if self._is_flexible:
            self._tagged_fields(struct, value, path)

    def _field(self, field: FieldSpec, value: str, path: str) -> None:
        nullable = self._version in field.nullable_versions
        flexible = self._is_flexible
        if field.flexible_versions is not None:
            flexible = self._version in field.flexible_versions
        if field.is_array:
            self._array(field, value, path, nullable=nullable, flexible=flexible)
        elif field.type == "struct" and nullable:
            self._nullable_struct(field, value, path)
        else:
            self._value(field, value, path, nullable=nullable, flexible=flexible)

    def _value(self, field: FieldSpec, value: str, path: str, *, nullable: bool, flexible: bool) -> None:
        """Write one value that is not an array, or one element of an array."""
        if field.type == "uuid":
            checked = f"{value} if len({value}) == 16 else checked_uuid({value})"
            self._fixed("16s", checked, path)
        elif field.type in FIXED_FORMATS:
            self._fixed(FIXED_FORMATS[field.type], value, path)
        elif field.struct:
            variable = value
            if not value.isidentifier():
                self._flush()
                variable = self._out.variable("s")
                self._out.line(f"{variable} = {value}")
            self._struct(field.struct, variable, path)
        elif field.type == "string":
            self._string(value, path, nullable=nullable, flexible=flexible)
        else:
            self._bytes(value, path, nullable=nullable, flexible=flexible)

    def _string(self, value: str, path: str, *, nullable: bool, flexible: bool) -> None:
        encoded = "t := utf_8(t)" if nullable else f"t := utf_8({value})"
        length = f"string_lengths[len({encoded}) + 1]" if flexible else f"len({encoded})"
        if nullable:
            null = r'b"\0"' if flexible else "-1"
            length = f"{null} if (t := {value}) is None else {length}"
        if flexible:
            self._piece(length, path)
        else:
            self._fixed("h", length, path)
        self._piece('t or b""' if nullable else "t", path)

    def _bytes(self, value: str, path: str, *, nullable: bool, flexible: bool) -> None:
        """Write bytes or records; large values are not copied."""
        length = "size_of(t)" if nullable else f"size_of(t := {value})"
        length = f"varints[{length} + 1]" if flexible else length
        if nullable:
            null = r'b"\0"' if flexible else "-1"
            length = f"{null} if (t := {value}) is None else {length}"
        if flexible:
            self._piece(length, path)
        else:
            self._fixed("i", length, path)
        self._flush()
        self._out.line("append_bytes(out, chunks, t)", path)

    def _nullable_struct(self, field: FieldSpec, value: str, path: str, *, absent: str = r'b"\xff"') -> None:
        """Write KIP-893's presence byte, then the struct; `absent` is the byte for None."""
        assert field.struct
        self._flush()
        variable = self._out.variable("s")
        self._out.line(f"{variable} = {value}")
        with self._out.block(f"if {variable} is None:"):
            self._out.line(f"out.append({absent})")
        with self._out.block("else:"):
            self._fixed("b", "1", path)
            self._struct(field.struct, variable, path)
            self._flush()

    # Arrays

    def _array(self, field: FieldSpec, value: str, path: str, *, nullable: bool, flexible: bool) -> None:
        if field.type in FIXED_FORMATS and field.type != "uuid":
            self._packed_array(field, value, path, nullable=nullable, flexible=flexible)
            return
        array = self._out.variable("a")
        null = r'b"\0"' if flexible else "-1"
        length = f"len({array})" if nullable else f"len({array} := {value})"
        length = f"varints[{length} + 1]" if flexible else length
        if nullable:
            length = f"{null} if ({array} := {value}) is None else {length}"
        if flexible:
            self._piece(length, path)
        else:
            self._fixed("i", length, path)
        elements = f"{array} or ()" if nullable else array
        if field.type == "uuid":
            self._piece(f"join_uuids({elements})", path)
            return
        self._flush()
        element = self._out.variable("x")
        with self._out.block(f"for {element} in {elements}:"):
            where = f"{path}[{element} in {array}]" if field.struct else f"{path}[]"
            self._value(field, element, where, nullable=False, flexible=flexible)
            self._flush()

    def _packed_array(self, field: FieldSpec, value: str, path: str, *, nullable: bool, flexible: bool) -> None:
        """Write count and elements of an array of numbers with one packer."""
        code = FIXED_FORMATS[field.type]
        prefix = "compact_array" if flexible else "array"
        packers = self._out.name(f"{prefix}_{code.replace('?', 't')}", lambda: primitives.array_packers(code, flexible))
        array = "t" if nullable else f"t := {value}"
        written = "len(t) + 1" if flexible else "len(t)"
        packed = f"{packers}[len({array})]({written}, *t)"
        if nullable:
            null = r'b"\0"' if flexible else r'b"\xff\xff\xff\xff"'
            packed = f"{null} if (t := {value}) is None else {packed}"
        self._piece(packed, path)

    # Tagged fields

    def _tagged_fields(self, struct: StructSpec, value: str, path: str) -> None:
        """Write the tagged fields that differ from their defaults; usually there are none."""
        conditions = {field: _non_default(field, f"{value}.{field.name}") for field in struct.tagged_in(self._version)}
        if not conditions:
            self._fixed("B", "0", path)
            return
        self._flush()
        out = self._out
        with out.block(f"if {' or '.join(conditions.values())}:", join_path(path, "tagged fields")):
            fields, outer = out.variable("tagged"), out.variable("outer")
            out.line(f"{fields} = []")
            out.line(f"{outer} = out")
            for field, condition in conditions.items():
                where = join_path(path, field.name)
                with out.block(f"if {condition}:", where):
                    out.line("out = []")
                    self._tagged_field(field, f"{value}.{field.name}", where)
                    self._flush()
                    out.line('t = b"".join(out)')
                    out.line(f"{fields} += (varints[{field.tag}], varints[len(t)], t)")
            out.line(f"out = {outer}")
            out.line(f"out.append(varints[len({fields}) // 3])")
            out.line(f"out += {fields}")
        with out.block("else:"):
            out.line(r'out.append(b"\0")')

    def _tagged_field(self, field: FieldSpec, value: str, path: str) -> None:
        """Write the value of a tagged field; in a nullable struct's, presence is a varint."""
        assert field.type not in ("bytes", "records"), "a tagged field has no chunks"
        if field.struct and not field.is_array and self._version in field.nullable_versions:
            self._nullable_struct(field, value, path, absent=r'b"\0"')
        else:
            self._field(field, value, path)


def _non_default(field: FieldSpec, value: str) -> str:
    """Return the condition under which `value` is not the field's default."""
    default = field.default
    if default is None:
        return f"{value} is not None"
    if default in ((), b""):
        return _non_empty(field, value)
    if default is True:
        return f"not {value}"
    return f"{value} != {default!r}" if default or default == "" else value


def _non_empty(field: FieldSpec, value: str) -> str:
    """Return the condition under which an array, bytes or a struct is not empty."""
    if field.struct and not field.is_array:
        conditions = [_non_default(f, f"{value}.{f.name}") for f in field.struct.fields]
        if field.nullable_versions:
            conditions.insert(0, f"{value} is None")
        return " or ".join(conditions)
    return f"{value} is None or len({value})" if field.nullable_versions else value
