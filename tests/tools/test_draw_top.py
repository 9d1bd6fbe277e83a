"""The picture of docs/start/terminal.md is what `broker-sim top` shows of a cluster."""

import runpy
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).parents[2]
WRITTEN = (ROOT / "docs" / "operate" / "top.svg").read_text(encoding="utf-8")


def test_the_picture_is_drawn_from_a_cluster_in_virtual_time():
    draw = runpy.run_path(str(ROOT / "tools" / "draw_top.py"))["draw"]
    assert draw() == WRITTEN, "run: python -m tools.draw_top"


def test_the_picture_fetches_nothing():
    assert ET.fromstring(WRITTEN).tag == "{http://www.w3.org/2000/svg}svg"
    assert WRITTEN.count("http") == WRITTEN.count('xmlns="http://www.w3.org/2000/svg"') == 1
    assert "url(" not in WRITTEN.replace("url(#", "")
