"""Sets of characters, compared with Python's sets."""

from itertools import pairwise
from random import Random

import pytest

from broker_sim.regex.characters import MAX_CODE, cases, folded, intersection, named, negated, ranges_of, union


def as_set(ranges):
    return {code for first, last in ranges for code in range(first, last + 1)}


@pytest.mark.parametrize("seed", range(20))
def test_operations_equal_pythons_set_operations(seed):
    random = Random(seed)

    def draw():
        starts = [random.randrange(60) for _ in range(random.randrange(5))]
        return union((start, start + random.randrange(8)) for start in starts)

    one, other = draw(), draw()
    assert as_set(union(one + other)) == as_set(one) | as_set(other)
    assert as_set(intersection(one, other)) == as_set(one) & as_set(other)
    assert negated(negated(one)) == one
    assert all(last + 1 < first for (_, last), (first, _) in pairwise(one))


def test_complement_of_nothing_is_everything():
    assert negated(()) == ((0, MAX_CODE),)
    assert negated(((0, MAX_CODE),)) == ()


def test_letters_have_all_case_variants():
    assert cases(ord("k")) == (ord("K"), ord("k"), ord("\u212a"))
    assert cases(ord("1")) == (ord("1"),)
    assert folded(ranges_of("k")) == tuple((code, code) for code in cases(ord("k")))


def test_classes_are_found_by_name():
    assert named("Nope") is None
    assert ord("\u03b1") in as_set(named("Greek"))
    assert ord("a") not in as_set(named("Lu"))
    assert ord("a") in as_set(named("Lu", ignores_case=True))
