"""Verdicts of the simulator on expressions, in the format of `tools/update_regex_tables.py`."""

import pytest

from broker_sim.coordinator.patterns import compile_pattern
from broker_sim.errors import ConfigError
from broker_sim.regex.java import JavaRegexError, compile_java
from broker_sim.regex.re2j import RegexError
from broker_sim.security.ssl_principal_mapper import SslPrincipalMapper
from tools.update_regex_tables import Verdict

NOT_SUPPORTED = "not supported by broker-sim"
"""Part of the message for expressions that are valid in Java but not supported."""


def result_of(dialect, expression):
    """Return a function from a text to the groups of its match, or to the principal; None without a match."""
    if dialect == "re2j":
        pattern = compile_pattern(expression)
        return lambda text: [] if pattern.matches(text) else None
    if dialect == "java":
        compiled = compile_java(expression)
        return lambda text: list(match.groups()) if (match := compiled.fullmatch(text)) else None
    mapper = SslPrincipalMapper(expression)
    return lambda text: None if (name := mapper.name_of(text)) is None else [name]


def our_verdict(theirs):
    """Return the simulator's verdict on the same expression and texts."""
    try:
        result = result_of(theirs.dialect, theirs.expression)
    except (RegexError, JavaRegexError, ConfigError) as error:
        return theirs._replace(error=str(error))
    return Verdict(theirs.dialect, theirs.expression, {text: result(text) for text in theirs.texts})


@pytest.fixture
def assert_same():
    """Return a check that the simulator's verdict is Java's, or that it names what it does not support."""

    def check(theirs):
        ours = our_verdict(theirs)
        if theirs.dialect == "principal" and theirs.error and ours.error:
            return  # the message names the invalid rule in other words
        if NOT_SUPPORTED in (ours.error or ""):
            assert theirs.dialect != "re2j"
            return
        assert ours == theirs

    return check
