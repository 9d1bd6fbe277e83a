"""Expressions of clients and configurations, compared with recorded verdicts of RE2/J and Java."""

import json
from collections import Counter

import pytest

from broker_sim.regex.java import JavaRegexError, compile_java
from tools.update_regex_tables import VERDICTS, Verdict

RECORDED = [Verdict(**json.loads(line)) for line in VERDICTS.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("dialect", ["re2j", "java", "principal"])
def test_verdicts_equal_recorded_ones(dialect, assert_same):
    for verdict in RECORDED:
        if verdict.dialect == dialect:
            assert_same(verdict)


def test_recording_has_matches_and_rejections_of_each_dialect():
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
def test_unsupported_java_construct_is_rejected_by_name(expression):
    with pytest.raises(JavaRegexError, match="not supported by broker-sim"):
        compile_java(expression)
