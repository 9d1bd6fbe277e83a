import re

import pytest

from broker_sim.coordinator.patterns import compile_pattern


def test_pattern_that_can_be_read_matches():
    assert compile_pattern("a{2,3}").fullmatch("aa")


@pytest.mark.parametrize("text", ["(", "a{4294967296}", "(" * 20_000 + ")" * 20_000])
def test_what_cannot_be_read_or_is_too_large_is_one_error(text):
    with pytest.raises(re.error):
        compile_pattern(text)
