"""A link to the playground carries a failing test: the page reads what the command has written."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from broker_sim.chaos import link
from broker_sim.chaos.link import NoLinkError, link_to
from broker_sim.chaos.search import NamedTest

READER = Path(__file__).parents[3] / "tools/playground/site/link.js"
READ = """
    import(process.argv[1])
        .then(link => link.fromFragment(process.argv[2]))
        .then(state => process.stdout.write(JSON.stringify(state)));
"""
PROGRAM = """
import pytest
from linked_helper import place


@pytest.mark.chaos(duration_s=7, workers=3)
async def test_orders(chaos):
    await place(chaos)  # naïve
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    (tmp_path / "linked_orders.py").write_text(PROGRAM, "utf-8")
    (tmp_path / "linked_helper.py").write_text("import json\nimport linked_orders\n\nasync def place(chaos): pass\n")
    (tmp_path / "unused.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    return "linked_orders:test_orders"


@pytest.mark.skipif(shutil.which("node") is None, reason="no Node: apt-get install nodejs")
def test_page_reads_the_program_its_settings_and_the_seed(program, tmp_path):
    test = NamedTest.of(program, faults=["crash", "cut"], brokers=4)
    address, fragment = link_to("http://127.0.0.1:8765/", test, 12).split("#")
    state = json.loads(subprocess.check_output(["node", "-e", READ, READER, f"#{fragment}"], text=True))
    assert address == "http://127.0.0.1:8765/"
    assert state == {
        "files": {name: (tmp_path / f"{name}.py").read_text("utf-8") for name in ("linked_orders", "linked_helper")},
        "module": "linked_orders",
        "test": "test_orders",
        "settings": {"faults": ["crash", "cut"], "order": None, "duration_s": None, "workers": None, "brokers": 4},
        "seed": 12,
    }


def test_program_too_long_for_a_link_is_reported_in_one_line(program, monkeypatch):
    with pytest.raises(NoLinkError, match="cannot contain --topic; set them in the test's marker"):
        link_to("/", NamedTest.of(program, topics=["orders"]), 1)
    monkeypatch.setattr(link, "MAX_CHARACTERS", 100)
    with pytest.raises(NoLinkError, match=r"it would have \d+ characters; 100 are allowed"):
        link_to("/", NamedTest.of(program), 1)
    with pytest.raises(NoLinkError, match=r"shop\.orders is part of a package"):
        link_to("/", NamedTest("shop.orders:test"), 1)
