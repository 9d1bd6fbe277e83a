"""The bench of the random runs: its mutants fit the code, it counts seeds, and two mutants are found."""

import ast
import json
import tomllib
from dataclasses import asdict

import pytest

from tools.defects.defect import ROOT
from tools.power.bench import (
    ALONE,
    Finding,
    SeedResult,
    Tree,
    count_seeds,
    found_alone,
    loses_power,
    read_alone,
    read_mutants,
)

MUTANTS = read_mutants()
SEARCHED = 300
"""Maximum number of seeds run to find one that only this invariant fails."""


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_mutant_can_be_put_in_and_is_no_syntax_error(mutant):
    compile(mutant.patched((ROOT / mutant.file).read_text()), mutant.file, "exec", dont_inherit=True)
    assert mutant.shows.endswith(".")


class PlayedTree:
    """A tree in which these seeds fail, each with that invariant."""

    seconds = 0.5

    def __init__(self, failing, without=()):
        self.failing = failing
        self.without = without
        self.ran = []

    def run(self, seed, without=""):
        self.ran.append(seed)
        if without:
            return SeedResult("other" if seed in self.without else "", 0.5)
        return SeedResult(self.failing.get(seed, ""), 0.5)


def test_seeds_are_counted_from_each_start_to_the_first_that_fails():
    tree = PlayedTree({2: "a", 30: "b"}, without={30})
    found = count_seeds(tree, "mutant", [0, 25, 50], limit=10)
    assert found.seeds == (3, 6, 11)
    assert found.invariants == {"a": 1, "b": 1}
    assert found.alone == {"a": 2}
    assert (found.median, found.missed) == (6, 1)
    assert json.loads(json.dumps(asdict(found)))["invariants"] == {"a": 1, "b": 1}


def test_median_above_the_limit_counts_as_missed():
    assert Finding("mutant", (11, 11, 3), 10, {}, {}, 0.1).median == 11


def test_seed_is_found_alone_if_it_passes_without_the_invariant():
    tree = PlayedTree({1: "b", 2: "a", 3: "a"}, without={2})
    assert found_alone(tree, "a", range(10)) == 3
    assert found_alone(PlayedTree({1: "b"}), "a", range(3)) is None


def invariants_of_the_code():
    """Return the names of all invariants that the product looks at in random runs."""
    names = set()
    rooms = [ROOT / "broker_sim" / room for room in ("cluster", "chaos")]
    for path in (path for room in rooms for path in room.rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and getattr(call.func, "id", getattr(call.func, "attr", "")) in {
                "violated",
                "_claim",
                "_until",
            }:
                names |= {
                    argument.value
                    for argument in call.args[:1]
                    if isinstance(argument, ast.Constant) and "-" in str(argument.value)
                }
    return names | {"recovers"}


def test_every_invariant_names_its_mutant_or_why_it_has_none():
    table = read_alone()
    assert set(table) == invariants_of_the_code()
    for entry in table.values():
        assert ("mutant" in entry) != ("why_none" in entry)
        assert entry.get("mutant", next(iter(MUTANTS))) in MUTANTS


@pytest.mark.parametrize(
    ("mutant", "seeds"), [("consumers_read_to_the_log_end", range(30)), ("aborted_transactions_are_shown", range(30))]
)
def test_mutant_is_found_in_few_seeds(mutant, seeds):
    with Tree(MUTANTS[mutant]) as tree:
        assert any(tree.run(seed).invariant for seed in seeds)


@pytest.mark.soak(part="power")
@pytest.mark.parametrize(
    ("invariant", "mutant"), [(name, entry["mutant"]) for name, entry in read_alone().items() if "mutant" in entry]
)
def test_invariant_has_a_mutant_that_only_it_finds(invariant, mutant):
    with Tree(MUTANTS[mutant]) as tree:
        assert found_alone(tree, invariant, range(SEARCHED)) is not None


def test_mutants_with_power_losses_are_apart():
    assert loses_power() < set(MUTANTS)
    assert tomllib.loads(ALONE.read_text())
