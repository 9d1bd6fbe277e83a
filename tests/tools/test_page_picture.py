"""The picture with which README.md begins is made by a command, of the page as it is."""

import re
from pathlib import Path

import pytest

from broker_sim.page import files

ROOT = Path(__file__).parents[2]
MOST_BYTES = 250_000
"""Size of the picture that a clone and the front page of a repository carry."""


def test_readme_begins_with_the_picture_that_the_command_writes():
    page_picture = pytest.importorskip("tools.page_picture", reason="playwright is missing: pip install playwright")
    picture = re.search(r"!\[[^]]*\]\(([^)]*)\)", (ROOT / "README.md").read_text("utf-8")[:300])
    assert picture is not None
    assert ROOT / picture.group(1) == page_picture.FILE
    assert page_picture.FILE.stat().st_size <= MOST_BYTES


def test_what_the_command_waits_for_is_still_drawn():
    text = (ROOT / "tools" / "page_picture.py").read_text("utf-8")
    classes = re.findall(r'locator\("\.(\w+)"\)', text)
    assert classes
    for name in classes:
        assert any(re.search(rf'class: "{name}\b', files.read(each)) for each in files.names() if each.endswith(".js"))
    assert "broker ${now.id} is ${now.state}" in files.read("events.js")
