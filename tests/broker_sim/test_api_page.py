"""docs/api.md is what the docstrings say."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_page_of_the_python_api_is_up_to_date():
    page = runpy.run_path(str(ROOT / "tools" / "api_page.py"))["build_page"]
    written = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert written == page(), "run: python -m tools.api_page"
