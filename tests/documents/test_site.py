"""The site: its own part of the build, docs/conf.py, and how wide its pages are in Chromium.

`make site` in `make lint` judges the text of all pages.
"""

import json
import re
import runpy
import subprocess
import sys
import zlib
from base64 import urlsafe_b64decode
from pathlib import Path

import pytest

from tools.browsers import REMEDY, find_browser

ROOT = Path(__file__).parents[2]
CONF = runpy.run_path(str(ROOT / "docs" / "conf.py"))
REPOSITORY = "https://example.org/broker-sim"


def linked(text, repository):
    return CONF["with_repository_links"](text, ROOT / "docs" / "start", repository)


def test_link_to_a_file_outside_the_pages_leads_to_the_repository():
    text = "[an application](../../examples/chaos/shop.py#L3)"
    assert linked(text, REPOSITORY) == f"[an application]({REPOSITORY}/blob/main/examples/chaos/shop.py#L3)"


def test_link_to_a_file_is_its_name_without_a_repository():
    assert linked("[an application](../../examples/chaos/shop.py)", "") == "an application (`examples/chaos/shop.py`)"
    assert linked("[examples/chaos](../../examples/chaos)", "") == "examples/chaos"


def test_link_between_pages_stays():
    assert linked("[Faults](../recipes/faults.md#a)", REPOSITORY) == "[Faults](../recipes/faults.md#a)"


def test_each_section_of_the_index_is_a_table_of_contents():
    index = "# T\n\n## Start\n\n- [A](start/a.md): x\n- [B](start/b.md#c): x\n\n## Rest\n\n- [C](c.md)\n"
    tables = CONF["table_of_contents"](index)
    assert ":caption: Start\n\nstart/a\n" in tables
    assert ":caption: Rest\n\nc\n" in tables


WIDTHS_PX = (400, 1280, 2000)
ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
TOO_WIDE = """() => [document.documentElement, ...document.querySelectorAll(".table-wrapper")]
  .filter(element => element.scrollWidth > element.clientWidth + 1)
  .map(element => `${element.scrollWidth - element.clientWidth} px: ${element.innerText.slice(0, 60)}`)"""
"""Returns how far the page and each of its tables can be scrolled sideways, for those that can."""


@pytest.mark.soak(part="playground")
def test_no_page_and_no_table_scrolls_sideways(tmp_path, require_or_skip):
    browser_path = find_browser()
    if browser_path is None:
        require_or_skip(REMEDY)
    playwright_api = pytest.importorskip("playwright.sync_api")
    subprocess.run(
        [sys.executable, "-m", "sphinx", "--quiet", "--jobs", "auto", str(ROOT / "docs"), str(tmp_path)], check=True
    )
    too_wide = []
    with playwright_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=ARGUMENTS)
        tab = browser.new_page()
        for file in sorted(tmp_path.rglob("*.html")):
            tab.goto(file.as_uri())
            for width_px in WIDTHS_PX:
                tab.set_viewport_size({"width": width_px, "height": 900})
                place = f"{file.relative_to(tmp_path)} at {width_px} px"
                too_wide += [f"{place}: {element}" for element in tab.evaluate(TOO_WIDE)]
        browser.close()
    assert too_wide == []


def test_test_under_chaos_has_a_link_that_carries_it_with_what_it_imports():
    page = (
        "```python file=shop.py\nasync def work(): ...\n```\n\n"
        "```python file=other.py\nimport asyncio\n```\n\n"
        "```python file=test_shop.py\nimport pytest\nfrom shop import work\n\n\n"
        "@pytest.mark.chaos(seeds=3)\nasync def test_orders(chaos):\n    await work()\n```\n"
    )
    text = CONF["with_run_links"](page, "../playground/index.html")
    (packed,) = re.findall(r'<a href="\.\./playground/index\.html#chaos=([\w-]+)">', text)
    state = json.loads(zlib.decompress(urlsafe_b64decode(packed + "=" * (-len(packed) % 4)), wbits=-zlib.MAX_WBITS))
    assert {name: text.splitlines()[0] for name, text in state["files"].items()} == {
        "test_shop": "import pytest",
        "shop": "async def work(): ...",
    }
    assert (state["module"], state["test"]) == ("test_shop", "test_orders")
    assert text.index("../playground") > text.index("await work()")
