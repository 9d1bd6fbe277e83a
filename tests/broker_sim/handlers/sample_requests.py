"""One request of each API and version that names two of everything, for tests of errors."""

from broker_sim.handlers import ApiTable
from broker_sim.metadata import NO_TOPIC_ID
from broker_sim.protocol.api_keys import ApiKey, request_class
from broker_sim.protocol.message import Struct
from broker_sim.protocol.schema import FIXED_FORMATS

TABLE = ApiTable()
VALID_NUMBERS = {
    "acks": -1,
    "session_epoch": -1,
    "session_id": 0,
    "share_session_epoch": 0,
    "operation": 3,
    "pattern_type": 3,
    "pattern_type_filter": 3,
    "permission_type": 3,
    "resource_pattern_type": 3,
    "resource_type": 2,
    "resource_type_filter": 2,
}
"""Numbers that stand for something, and are not any."""


def served_versions():
    """Return each API that brokers serve with each of its versions."""
    specs = [TABLE.get(api) for api in ApiKey if TABLE.get(api)]
    return [(spec.key, version) for spec in specs for version in range(spec.min_version, spec.max_version + 1)]


def sample_request(api, version):
    """Return a request in which every list has two elements and, but for ids beside names, no field is null."""
    cls = request_class(api)
    request = _struct(cls, cls.SPEC.root, cls, version, 0)
    if api in (ApiKey.METADATA, ApiKey.DELETE_TOPICS):
        for topic in request.topics:
            topic.topic_id = NO_TOPIC_ID
    if api is ApiKey.OFFSET_FETCH:
        for group in request.groups:
            group.member_id, group.member_epoch = None, -1
    return request


def _struct(cls, spec, message, version, number):
    made = cls()
    for field in spec.fields:
        if version in field.versions:
            values = [_value(field, message, version, each) for each in ((0, 1) if field.is_array else (number,))]
            setattr(made, field.name, values if field.is_array else values[0])
    return made


def _value(field, message, version, number):
    if field.struct:
        return _struct(message.STRUCTS[field.struct.name], field.struct, message, version, number)
    if field.name in VALID_NUMBERS:
        return VALID_NUMBERS[field.name]
    others = {
        "uuid": bytes([number + 1]) * 16,
        "bool": True,
        "float64": 1.0,
        "int8": 0,
        "string": f"{field.name}-{number}",
        "records": b"",
        "bytes": b"x",
    }
    assert field.type in others or field.type in FIXED_FORMATS
    return others.get(field.type, number + 1)


def error_places(value, path=""):
    """Return the fields of a response that have an error, such as `groups.error_code`, with the errors."""
    if isinstance(value, list):
        return {place for each in value for place in error_places(each, path)}
    if not isinstance(value, Struct):
        return set()
    places = set()
    for name in value.__slots__:
        field, inner = f"{path}{name}", getattr(value, name)
        if name.endswith("error_code"):
            places |= {(field, inner)} if inner else set()
        else:
            places |= error_places(inner, f"{field}.")
    return places


def in_any_order(value):
    """Return a message as plain values whose rows are sorted: Kafka has some in the order of hash maps."""
    if isinstance(value, list):
        return sorted((in_any_order(each) for each in value), key=repr)
    if isinstance(value, Struct):
        return {name: in_any_order(getattr(value, name)) for name in value.__slots__}
    return value
