"""The page of configurations is what the definitions say."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_page_is_made_of_the_definitions():
    page = runpy.run_path(str(ROOT / "tools" / "config_page.py"))["page"]
    written = (ROOT / "docs" / "reference" / "configurations.md").read_text(encoding="utf-8")
    assert written == page(), "run: python -m tools.config_page"
