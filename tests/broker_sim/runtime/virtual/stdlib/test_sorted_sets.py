"""Sets of libraries are iterated in an order that does not come from hashes, and are sets in all else."""

import copy
import pickle
from types import ModuleType

import pytest

from broker_sim.runtime.virtual.stdlib.sorted_sets import sort_sets_of, sorted_frozenset, sorted_set

WORDS = ("pear", "apple", "fig", "quince", "plum")
KINDS = pytest.mark.parametrize("kind", [sorted_set, sorted_frozenset])


@KINDS
def test_order_is_that_of_the_members(kind):
    assert [*kind(WORDS)] == sorted(WORDS)
    assert [*dict.fromkeys(kind(WORDS))] == sorted(WORDS)


@KINDS
def test_results_of_operations_are_sorted_too(kind):
    one, other = kind(WORDS), kind(["fig", "kiwi"])
    results = [one | other, other | one, one - other, one ^ other, one.union(other), one.difference(other), one.copy()]
    assert all([*result] == sorted(result) for result in results)
    assert [*(one & other)] == ["fig"]
    assert copy.copy(one) == set(WORDS)


@KINDS
def test_it_equals_plain_sets_and_is_one(kind):
    assert kind(WORDS) == set(WORDS)
    assert set(WORDS) == kind(WORDS)
    assert isinstance(kind(WORDS), kind.__bases__[0])
    assert isinstance(kind.__bases__[0](), kind)
    assert repr(kind()) == repr(kind.__bases__[0]())
    assert repr(kind(["fig"])) == repr(kind.__bases__[0](["fig"]))
    assert ("a" in kind(WORDS), "fig" in kind(WORDS), len(kind(WORDS))) == (False, True, len(WORDS))


@KINDS
def test_members_without_an_order_are_all_there(kind):
    assert {*kind([1, "one", None])} == {1, "one", None}


def test_pop_takes_the_least():
    words = sorted_set(WORDS)
    assert [words.pop() for _ in WORDS] == sorted(WORDS)
    with pytest.raises(KeyError):
        words.pop()


def test_frozen_ones_are_keys_like_plain_ones():
    assert {frozenset(WORDS): 1}[sorted_frozenset(WORDS)] == 1


@KINDS
def test_it_can_be_sent_to_another_process(kind):
    assert pickle.loads(pickle.dumps(kind(WORDS))) == set(WORDS)


def test_module_makes_sorted_sets_from_then_on():
    module = ModuleType("library")
    exec("def topics(*names):\n    return set(names), frozenset(names)", vars(module))
    sort_sets_of(module)
    for topics in module.topics(*WORDS):
        assert [*topics] == sorted(WORDS)
