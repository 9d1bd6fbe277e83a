"""The picture in README.md is of the run that docs/chaos/index.md shows, which is typed by tests/documents."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

CHAOS = Path(__file__).parents[2] / "docs" / "chaos"
TEXT = "{http://www.w3.org/2000/svg}text"


def _lines():
    """Return the lines of the picture, without blanks."""
    rows = {}
    for text in ET.parse(CHAOS / "chaos.svg").iter(TEXT):
        if text.get("y") is not None:
            rows.setdefault(float(text.get("y")), []).append((float(text.get("x")), "".join(text.itertext())))
    lines = ["".join(part for _, part in sorted(parts)) for _, parts in sorted(rows.items())]
    return [re.sub(r"\s", "", line) for line in lines]


def test_each_line_of_the_picture_stands_in_the_page():
    page = re.sub(r"[^\S\n]", "", (CHAOS / "index.md").read_text(encoding="utf-8"))
    lines = [line for line in _lines() if line not in {"", "broker-simchaos"}]
    assert len(lines) > 15
    assert [line for line in lines if line not in page] == [], "run: python -m tools.draw_chaos"
