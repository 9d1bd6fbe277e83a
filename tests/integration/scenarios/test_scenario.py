"""The outline of a scenario is its code: what a recording depends on, and nothing else."""

import pytest

from integration.broker_verbs import Fault
from integration.scenarios.scenario import Scenario, scenario


def scenario_of(function, **changes):
    values = {
        "name": "claim",
        "family": "family",
        "description": "",
        "topology": "1 x 1",
        "configs": (),
        "needs": frozenset(),
        "function": function,
    }
    return Scenario(**{**values, **changes})


def claim():
    def claim(cluster):
        """What is observed."""
        yield cluster.first

    return claim


def claim_with_other_words():
    def claim(cluster):
        """Another description.

        With more of it.
        """
        # A comment.
        yield (
            cluster.first
        )  # fmt: skip

    return claim


def claim_without_docstring():
    def claim(cluster):
        yield cluster.first

    return claim


def claim_with_other_steps():
    def claim(cluster):
        """What is observed."""
        yield cluster.second

    return claim


@pytest.mark.parametrize("same", [claim_with_other_words, claim_without_docstring])
def test_words_and_layout_are_not_part_of_the_outline(same):
    assert scenario_of(same()).outline == scenario_of(claim()).outline


def test_steps_family_and_name_are_part_of_the_outline():
    outline = scenario_of(claim()).outline
    assert scenario_of(claim_with_other_steps()).outline != outline
    assert scenario_of(claim(), family="other").outline != outline
    assert scenario_of(claim(), name="other").outline != outline


def test_decorator_keeps_what_the_scenario_needs():
    @scenario(topology="2 x 2", configs={"b": "2", "a": "1"}, needs={Fault.KILL})
    def claim(cluster):
        """What is
        observed.
        """

    (marked,) = (value for value in vars(claim).values() if isinstance(value, Scenario))
    assert (marked.name, marked.description) == ("claim", "What is observed.")
    assert marked.configs == (("a", "1"), ("b", "2"))
    assert (marked.topology, marked.needs) == ("2 x 2", {Fault.KILL})
