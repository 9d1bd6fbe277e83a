"""What is understood as the body of a request, and what is said of the rest."""

import pytest

from broker_sim.control.bodies import BadRequestError, parse_body

LARGEST = 2**63 - 1


@pytest.mark.parametrize("content", [b"[" * 200_000, b'{"a":' * 100_000])
def test_body_that_is_too_deep_is_refused(content):
    with pytest.raises(BadRequestError, match="too deep"):
        parse_body(content)


@pytest.mark.parametrize("number", [LARGEST, -LARGEST - 1])
def test_numbers_of_64_bits_are_taken(number):
    assert parse_body(b'{"a": %d}' % number).take("a", int) == number


@pytest.mark.parametrize(
    "number", [b"1" + b"0" * 30, b"-9223372036854775809", b"1e999", b"-1e999", b"NaN", b"Infinity"]
)
def test_other_numbers_are_refused(number):
    with pytest.raises(BadRequestError, match="numbers have at most 64 bits"):
        parse_body(b'{"a": %s}' % number)


def test_secret_of_the_wrong_type_is_not_in_the_error():
    with pytest.raises(BadRequestError, match="'password' must be str, not <hidden>"):
        parse_body(b'{"password": 1234}').take("password", str)


@pytest.mark.parametrize("content", [b'{"a": "\\ud800"}', b'{"a": {"\\udfff": 1}}'])
def test_half_of_a_surrogate_pair_is_refused(content):
    with pytest.raises(BadRequestError, match="a lone surrogate"):
        parse_body(content)


def test_whole_surrogate_pair_is_one_character():
    assert parse_body(b'{"a": "\\ud83d\\ude00"}').take("a", str) == "\U0001f600"


def test_assignments_map_partitions_to_brokers():
    body = parse_body(b'{"a": {"0": [1, 2], "1": []}}')
    assert body.take_assignments("a") == {0: [1, 2], 1: []}


@pytest.mark.parametrize(
    "value",
    [
        '{"\\u0660": [1]}',
        '{"9999999999999": [1]}',
        '{"-1": [1]}',
        '{"0": ["\\u0661"]}',
        '{"0": [1.9]}',
        '{"0": [true]}',
        '{"0": 1}',
        '{"0": "12"}',
        "[1]",
    ],
)
def test_assignments_of_anything_but_numbers_are_refused(value):
    with pytest.raises(BadRequestError, match=r"a partition must be a number|lists of brokers, not"):
        parse_body(b'{"a": %s}' % value.encode()).take_assignments("a")
