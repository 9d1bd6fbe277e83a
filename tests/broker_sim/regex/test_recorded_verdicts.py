"""Expressions of clients and configurations beside what RE2/J and Java say about them, as it was recorded."""

import json
from collections import Counter

import pytest

from broker_sim.regex.java import JavaRegexError, compile_java
from tools.update_regex_tables import VERDICTS, Verdict

RECORDED = [Verdict(**json.loads(line)) for line in VERDICTS.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("dialect", ["re2j", "java", "principal"])
def test_expressions_mean_what_kafkas_jars_say(dialect, assert_same):
    for verdict in RECORDED:
        if verdict.dialect == dialect:
            assert_same(verdict)


def test_recording_has_expressions_of_each_dialect_that_match_and_that_are_refused():
    count = Counter((verdict.dialect, verdict.error is None) for verdict in RECORDED)
    assert min(count.values()) > 5
    assert len(count) == 6


@pytest.mark.parametrize(
    "expression",
    [
        *(r"(?x)a b", r"(?U)\w", r"\X", r"\b{g}", r"\G", r"\p{InGreek}", r"\p{javaLowerCase}"),
        *(r"\p{IsAlphabetic}", r"\p{blk=Greek}", "(?<=a{1,3})b", r"(a\1)"),
    ],
)
def test_what_only_java_reads_is_refused_by_name(expression):
    with pytest.raises(JavaRegexError, match="not supported by broker-sim"):
        compile_java(expression)
