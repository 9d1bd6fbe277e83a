import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_sim.coordinator.patterns import (
    MAX_CACHED_PLACES,
    MAX_CHARACTERS,
    MAX_INSTRUCTIONS,
    compile_pattern,
    match_at_once_or_beside,
)
from broker_sim.regex.re2j import RegexError

# Before Python 3.14, `\\B` did not match the empty text.
LETTERS = st.text(alphabet="ab1_-\n", min_size=1, max_size=8)
ATOMS = st.sampled_from(
    ["a", "b", ".", "[ab]", "[^a]", "[^a-b]", r"\w", r"\W", r"\d", r"\s", "^", r"\b", r"\B", r"\A", ""]
)
EXPRESSIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "*?", "+?", "??", "{2}", "{1,3}", "{2,}"])).map(
            lambda two: f"({two[0]}){two[1]}"
        ),
        inner.map(lambda one: f"(?i:{one})"),
        inner.map(lambda one: f"(?s:{one})"),
        inner.map(lambda one: f"(?m:{one})"),
    ),
    max_leaves=8,
)


@given(EXPRESSIONS, st.lists(LETTERS, max_size=4))
def test_whole_texts_match_as_with_python(expression, texts):
    pattern, expected = compile_pattern(expression), re.compile(expression, re.ASCII)
    for text in texts:
        assert pattern.matches(text) == bool(expected.fullmatch(text)), text


@pytest.mark.parametrize(
    ("expression", "matching", "other"),
    [
        ("a{2,3}", "aaa", "aaaa"),
        ("orders-.*", "orders-eu", "order-eu"),
        ("^(eu|us)$", "us", "us\n"),
        ("(?i)Orders", "oRDERS", "orders1"),
        (r"a\b-", "a-", "a"),
        (r"[^a-c]\d", "x1", "b1"),
        ("", "", "a"),
        ("ä|[ö-ü]", "ö", "a"),
    ],
)
def test_pattern_matches_whole_texts(expression, matching, other):
    pattern = compile_pattern(expression)
    assert pattern.matches(matching)
    assert not pattern.matches(other)


@pytest.mark.parametrize("expression", ["(a+)+b", "(a|a)*b", "(a*)*b", "a?" * 60 + "a" * 60])
def test_time_is_linear_where_backtracking_is_exponential(expression):
    assert not compile_pattern(expression).matches("a" * 59)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("(?=a)a", "invalid or unsupported Perl syntax"),
        ("(?!a)b", "invalid or unsupported Perl syntax"),
        ("(?<=a)b", "invalid named capture"),
        ("(?>a)", "invalid or unsupported Perl syntax"),
        ("(a)?(?(1)b|c)", "invalid or unsupported Perl syntax"),
        (r"(a)\1", "invalid escape sequence"),
        ("a++", "invalid nested repetition operator"),
        ("a{1001}", "invalid repeat count"),
        ("a{2,1001}", "invalid repeat count"),
        ("(a{1000}){1000}", "too large"),
        ("a" * (MAX_INSTRUCTIONS + 1), "too large"),
        ("(" * 1_200 + "a" + ")*" * 1_200, "nests too deeply"),
        ("a" * (MAX_CHARACTERS + 1), "too large"),
        (r"[\pL]" * 100, "too large"),
        ("(?i)" + "[B-\\x{ffff}]" * 20, "too large"),
    ],
)
def test_unsupported_or_too_large_expressions_are_rejected(expression, message):
    with pytest.raises(RegexError, match=message):
        compile_pattern(expression)


@pytest.mark.parametrize("inner", ["", "(?:)", "((){1000})"])
def test_repetition_of_nothing_takes_no_time(inner):
    nested = inner
    for _ in range(30):
        nested = f"(?:{nested}){{1000}}"
    assert compile_pattern(f"a{nested}b").matches("ab")


def test_character_class_of_any_size_is_one_instruction():
    pattern = compile_pattern(f"[^{''.join(map(chr, range(1_000, 5_000)))}b-c]*")
    assert pattern.size < 5
    assert pattern.matches("ad")
    assert not any(pattern.matches(text) for text in ("b", chr(1_000), chr(4_999)))


def test_step_cache_is_limited():
    pattern = compile_pattern("(?:.*a.{900}b)|.*")
    random = Random(1)
    assert pattern.matches("".join(random.choices("ab", k=2_500)))
    assert MAX_CACHED_PLACES // 2 < sum(map(len, pattern._cached_steps.values())) <= MAX_CACHED_PLACES


@pytest.mark.parametrize("count", [1_000, 1_001])
def test_long_match_does_not_run_on_the_event_loop(count):
    calls = []
    match_at_once_or_beside(
        lambda: "matched",
        calls.append,
        [compile_pattern("a" * 50)] * 2,
        ["x" * count],
        lambda match, on_done: calls.append((match(), on_done)),
    )
    assert calls == ["matched" if count <= 1_000 else ("matched", calls.append)]


def test_same_expression_is_compiled_once():
    first, second = compile_pattern("read-once-.*"), compile_pattern("read-once-.*")
    assert first._program is second._program
    assert first.matches("read-once-1")
    assert first._cached_steps
    assert not second._cached_steps  # another thread may use it meanwhile


@pytest.mark.parametrize(("regex", "text"), [("(?i)k", "\u212a"), ("(?i)ß", "ẞ")])
def test_case_insensitive_flag_uses_unicode_folding(regex, text):
    assert compile_pattern(regex).matches(text)
    assert not compile_pattern(regex.removeprefix("(?i)")).matches(text)


def test_largest_expression_is_accepted():
    assert compile_pattern("a" * MAX_INSTRUCTIONS).matches("a" * MAX_INSTRUCTIONS)


def test_many_different_texts_match_after_each_other():
    pattern = compile_pattern(r"(.*-)?\b[0-9]+")
    assert all(pattern.matches(f"{chr(200 + number)}-{number}") for number in range(12_000))


@pytest.mark.parametrize("text", ["(", "a{4294967296}", "(" * 20_000 + ")" * 20_000])
def test_invalid_or_huge_expression_raises_regex_error(text):
    with pytest.raises(RegexError):
        compile_pattern(text)
