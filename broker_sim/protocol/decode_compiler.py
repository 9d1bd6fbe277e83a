"""Compile the decoder of one version of one message.

The generated function is like one written by hand for that version: nested structs are inlined,
neighbouring fields of fixed size (and the length after them) are read by one `struct.Struct`,
strings and bytes are slices. Kafka: the `read` methods that
`MessageDataGenerator` writes.

In generated code `b` is the buffer, `o` the offset, `n` the buffer's length, `c` a
length or count just read, `v` a memoryview of the buffer.
"""

from struct import Struct, calcsize, unpack_from

from broker_sim.protocol import primitives
from broker_sim.protocol.errors import ProtocolError
from broker_sim.protocol.message import Message
from broker_sim.protocol.schema import FIXED_FORMATS, FieldSpec, MessageSpec, StructSpec
from broker_sim.protocol.source import CompiledFunction, Source, group_paths, join_path


def compile_decoder(message: type[Message], version: int, *, limited: bool = False) -> CompiledFunction:
    """Return `decode(buffer, offset) -> message`, which raises on any malformed input.

    `limited` refuses too large arrays and too many tagged fields, as brokers do from 4.4 on.
    """
    return _DecodeCompiler(message, version, limited=limited).compile()


class _DecodeCompiler:
    def __init__(self, message: type[Message], version: int, *, limited: bool) -> None:
        self._limited = limited
        self._spec: MessageSpec = message.SPEC
        self._version = version
        self._is_flexible = version in self._spec.flexible_versions
        self._out = Source(f"decode {self._spec.name} v{version}")
        self._out.names |= {
            "ProtocolError": ProtocolError,
            "new": object.__new__,
            "unpack_from": unpack_from,
            "read_varint": primitives.read_varint,
            "finish_varint": primitives.finish_varint,
            "finish_length": primitives.finish_length,
            "finish_array_length": primitives.finish_array_length if limited else primitives.finish_length,
            "finish_tag_count": primitives.finish_tag_count if limited else primitives.finish_varint,
            "finish_string_length": primitives.finish_string_length,
            "skip_tagged_field": primitives.skip_tagged_field,
            "skip_tagged_fields": (primitives.skip_few_tagged_fields if limited else primitives.skip_tagged_fields),
            self._spec.name: message,
            **message.STRUCTS,
        }
        self._formats: list[str] = []
        self._targets: list[str] = []
        self._paths: list[str] = []

    def compile(self) -> CompiledFunction:
        out = self._out
        with out.block("def decode(b, o):"):
            out.line("n = len(b)")
            if self._has_bytes(self._spec.root):
                out.line("v = memoryview(b)")
            self._struct(self._spec.root, "m", "")
            self._flush()
            out.line("return m")
        return out.compile("decode")

    def _has_bytes(self, struct: StructSpec) -> bool:
        """Return whether any field of this version is sliced as bytes."""
        return any(
            field.type in {"bytes", "records"} or (field.struct is not None and self._has_bytes(field.struct))
            for field in struct.fields
            if self._version in field.versions
        )

    # Runs of fixed size

    def _fixed(self, code: str, target: str, path: str) -> None:
        """Read one fixed-size value, together with its neighbours, into `target`."""
        self._formats.append(code)
        self._targets.append(target)
        self._paths.append(path)

    def _length(self, code: str, path: str) -> None:
        """Read a length into `c` as the end of the current run."""
        self._fixed(code, "c", path)
        self._flush()

    def _flush(self) -> None:
        """Emit the code that reads the collected run."""
        if not self._formats:
            return
        run = "".join(self._formats)
        path = group_paths(self._paths)
        if run == "B":
            self._out.line(f"{self._targets[0]} = b[o]", path)
            self._out.line("o += 1")
        else:
            reader = self._out.name(f"read_{run.replace('?', 't')}", lambda: Struct(f">{run}").unpack_from)
            targets = ", ".join(self._targets) + ("," if len(self._targets) == 1 else "")
            self._out.line(f"{targets} = {reader}(b, o)", path)
            self._out.line(f"o += {calcsize(f'>{run}')}")
        self._formats, self._targets, self._paths = [], [], []

    # Structs and fields

    def _struct(self, struct: StructSpec, target: str, path: str) -> None:
        """Create a struct in the variable `target` and read its fields."""
        self._out.line(f"{target} = new({struct.name})")
        tagged = struct.tagged_in(self._version)
        for field in (*struct.absent_in(self._version), *tagged):
            self._out.line(f"{target}.{field.name} = {_default(field)}")
        for field in struct.fields_in(self._version):
            self._field(field, f"{target}.{field.name}", join_path(path, field.name), tagged=False)
        if self._is_flexible:
            self._tagged_fields(struct, target, path)

    def _field(self, field: FieldSpec, target: str, path: str, *, tagged: bool) -> None:
        nullable = self._version in field.nullable_versions
        flexible = self._is_flexible
        if field.flexible_versions is not None:
            flexible = self._version in field.flexible_versions
        if field.is_array:
            self._array(field, target, path, nullable=nullable, flexible=flexible)
        elif field.type == "struct" and nullable:
            self._nullable_struct(field, target, path, tagged=tagged)
        else:
            self._value(field, target, path, nullable=nullable, flexible=flexible)

    def _value(self, field: FieldSpec, target: str, path: str, *, nullable: bool, flexible: bool) -> None:
        """Read one value that is not an array, or one element of an array."""
        if field.type in FIXED_FORMATS:
            self._fixed(FIXED_FORMATS[field.type], target, path)
        elif field.struct:
            variable = target if target.isidentifier() else self._out.variable("s")
            self._struct(field.struct, variable, path)
            if variable != target:
                self._out.line(f"{target} = {variable}")
        else:
            self._sized(field.type, target, path, nullable=nullable, flexible=flexible)

    def _sized(self, kind: str, target: str, path: str, *, nullable: bool, flexible: bool) -> None:
        """Read a string, bytes or records: a length, then that many bytes."""
        out = self._out
        is_string = kind == "string"
        value = 'str(b[o:e], "utf-8", "replace")' if is_string else "v[o:e]"
        if flexible:
            self._length("B", path)
            with out.block("if c > 127:"):
                finish = "finish_string_length" if is_string else "finish_length"
                out.line(f"c, o = {finish}(b, o, c)", path)
            present, end = "if c > 0:", "e = o + c - 1"
        else:
            self._length("h" if is_string else "i", path)
            present, end = "if c >= 0:", "e = o + c"
        with out.block(present):
            out.line(end)
            with out.block("if e > n:"):
                out.line('raise ProtocolError(f"{e - o} bytes announced, {n - o} left")', path)
            out.line(f"{target} = {value}", path)
            out.line("o = e")
        self._else_null(target, path, nullable=nullable)

    def _else_null(self, target: str, path: str, *, nullable: bool) -> None:
        with self._out.block("else:"):
            if nullable:
                self._out.line(f"{target} = None")
            else:
                self._out.line('raise ProtocolError("null is not allowed")', path)

    def _nullable_struct(self, field: FieldSpec, target: str, path: str, *, tagged: bool) -> None:
        """Read KIP-893's presence byte, in a tagged field a varint, then the struct."""
        assert field.struct
        self._length("B" if tagged else "b", path)
        with self._out.block("if c > 0:" if tagged else "if c >= 0:"):
            if tagged:
                with self._out.block("if c > 127:"):
                    self._out.line("c, o = finish_varint(b, o, c)", path)
            variable = self._out.variable("s")
            self._struct(field.struct, variable, path)
            self._flush()
            self._out.line(f"{target} = {variable}")
        self._else_null(target, path, nullable=True)

    # Arrays

    def _array(self, field: FieldSpec, target: str, path: str, *, nullable: bool, flexible: bool) -> None:
        out = self._out
        if flexible:
            self._length("B", path)
            with out.block("if c > 127:"):
                out.line("c, o = finish_array_length(b, o, c)", path)
            present = "if c > 0:"
        else:
            self._length("i", path)
            present = "if c >= 0:"
            if self._limited:
                with out.block(f"if c > {primitives.MAX_ELEMENTS}:"):
                    reason = f'f"an array of {{c}} elements has more than {primitives.MAX_ELEMENTS}"'
                    out.line(f"raise ProtocolError({reason})", path)
        with out.block(present):
            if flexible:
                out.line("c -= 1")
            size = self._minimum_size(field)
            with out.block(f"if c * {size} > n - o:" if size > 1 else "if c > n - o:"):
                out.line('raise ProtocolError(f"{c} elements announced, {n - o} bytes left")', path)
            self._elements(field, target, path, flexible=flexible)
        self._else_null(target, path, nullable=nullable)

    def _elements(self, field: FieldSpec, target: str, path: str, *, flexible: bool) -> None:
        out = self._out
        if field.type == "uuid":
            out.line(f"{target} = [bytes(b[i : i + 16]) for i in range(o, o + 16 * c, 16)]", path)
            out.line("o += 16 * c")
            return
        if field.type in FIXED_FORMATS:
            code = FIXED_FORMATS[field.type]
            out.line(f'{target} = list(unpack_from(f">{{c}}{code}", b, o))', path)
            out.line(f"o += {calcsize(code)} * c")
            return
        array, element = out.variable("a"), out.variable("x")
        out.line(f"{target} = {array} = []")
        with out.block("for _ in range(c):"):
            if field.struct:
                self._struct(field.struct, element, f"{path}[{element} in {array}]")
            else:
                self._value(field, element, f"{path}[]", nullable=False, flexible=flexible)
            self._flush()
            out.line(f"{array}.append({element})")

    def _minimum_size(self, field: FieldSpec) -> int:
        """Return the minimum number of bytes of an element; at least 1, to bound the count."""
        if field.type in FIXED_FORMATS:
            return calcsize(f">{FIXED_FORMATS[field.type]}")
        if field.struct is None:
            return 1 if self._is_flexible else 2
        size = int(self._is_flexible)
        for inner in field.struct.fields_in(self._version):
            if inner.is_array:
                size += 1 if self._is_flexible else 4
            elif inner.struct and self._version in inner.nullable_versions:
                size += 1
            elif inner.type in ("bytes", "records"):
                size += 1 if self._is_flexible else 4
            else:
                size += self._minimum_size(inner)
        return max(size, 1)

    # Tagged fields

    def _tagged_fields(self, struct: StructSpec, target: str, path: str) -> None:
        """Read the known tagged fields, ignoring their declared size, and skip unknown ones.

        A field that only other versions have is refused, as by Kafka.
        """
        out = self._out
        tagged = struct.tagged_in(self._version)
        misplaced = struct.tags_of_other_versions(self._version)
        where = join_path(path, "tagged fields")
        self._length("B", where)
        with out.block("if c:"):
            if not tagged and not misplaced:
                out.line("o = skip_tagged_fields(b, o, c)", where)
                return
            with out.block("if c > 127:"):
                out.line("c, o = finish_tag_count(b, o, c)", where)
            tag = out.variable("tag")
            with out.block("for _ in range(c):"):
                out.line(f"{tag}, o = read_varint(b, o)", where)
                out.line("c, o = read_varint(b, o)", where)
                self._tagged_values(tagged, misplaced, target, path, tag)

    def _tagged_values(self, tagged: list[FieldSpec], misplaced: list[int], target: str, path: str, tag: str) -> None:
        """Read the value of the tagged field whose number is in the variable `tag`, size in `c`."""
        out = self._out
        where = join_path(path, "tagged fields")
        with out.block(f"if {tag} in {tuple(misplaced)}:"):
            reason = f'f"tag {{{tag}}} is not valid in version {self._version}"'
            out.line(f"raise ProtocolError({reason})", where)
        for field in tagged:
            with out.block(f"elif {tag} == {field.tag}:"):
                inner = join_path(path, field.name)
                self._field(field, f"{target}.{field.name}", inner, tagged=True)
                self._flush()
        with out.block("else:"):
            out.line("o = skip_tagged_field(b, o, c)", where)


def _default(field: FieldSpec) -> str:
    if field.default != ():
        return repr(field.default)
    return f"{field.struct.name}()" if field.struct and not field.is_array else "[]"
