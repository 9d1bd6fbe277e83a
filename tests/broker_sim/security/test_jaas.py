"""JAAS lines as Java reads them."""

import pytest

from broker_sim.errors import ConfigError
from broker_sim.security.jaas import parse_jaas

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", {}),
        ('user_billing="secret"', {"user_billing": "secret"}),
        ("a='b c' d=e-f_g.h$", {"a": "b c", "d": "e-f_g.h$"}),
        ('a="say \\"hi\\" \\\\ \\n \\101"', {"a": 'say "hi" \\ \n A'}),
        ('a="" b="x;y=z"', {"a": "", "b": "x;y=z"}),
        ('/* so */ a="1" // and so\n b="2"', {"a": "1", "b": "2"}),
    ],
)
def test_options(options, expected):
    module = parse_jaas(f"{MODULE} required {options};")
    assert (module.name, module.options) == (MODULE, expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Login module not specified in JAAS config"),
        (MODULE, "Login module control flag not specified in JAAS config"),
        (f"{MODULE} wanted;", "Invalid login module control flag 'wanted' in JAAS config"),
        (f'{MODULE} required a="b"', "JAAS config entry not terminated by semi-colon"),
        (f"{MODULE} required a;", "Value not specified for key 'a' in JAAS config"),
        (f"{MODULE} required a=;", "Value not specified for key 'a' in JAAS config"),
        (f"{MODULE} required a", "Value not specified for key 'a' in JAAS config"),
        (f"{MODULE} required; {MODULE} required;", "JAAS config property contains 2 login modules, should be 1 module"),
    ],
)
def test_refusals(text, message):
    with pytest.raises(ConfigError) as error:
        parse_jaas(text)
    assert str(error.value) == message


def test_values_are_in_no_text():
    assert "secret" not in repr(parse_jaas(f'{MODULE} required user_a="secret";'))
    with pytest.raises(ConfigError) as error:
        parse_jaas(f'{MODULE} required user_a="secret" user_b;')
    assert "secret" not in str(error.value)
