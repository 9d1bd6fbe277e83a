"""The site's own part of its build: docs/conf.py. `make site` in `make lint` judges all pages."""

import runpy
from pathlib import Path

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
