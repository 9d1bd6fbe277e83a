"""What docs/virtual-time/index.md names exists; its examples are run by tests/documents."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "virtual-time" / "index.md"


def test_arguments_of_the_marker_are_all_listed():
    from broker_sim.testing.options import VirtualTimeOptions

    table = re.findall(r"^\| `(\w+)` \| (.*?) \|", PAGE.read_text(), re.MULTILINE)
    listed = {name: default.strip("`").replace('"', "") for name, default in table}
    defaults = VirtualTimeOptions()
    for field in fields(VirtualTimeOptions):
        assert listed[field.name] == f"{getattr(defaults, field.name)}".removesuffix(".0")


@pytest.mark.parametrize("name", re.findall(r"^\| `(\w+Error)` \|", PAGE.read_text(), re.MULTILINE))
def test_errors_of_the_page_exist(name):
    from broker_sim.cluster.virtual import invariants
    from broker_sim.runtime import virtual

    assert issubclass(getattr(virtual, name, None) or getattr(invariants, name), Exception)
