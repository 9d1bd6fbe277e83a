"""docs/reference/apis.md is what the API table and the known differences say."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def page():
    return runpy.run_path(str(ROOT / "tools" / "kafka_apis_page.py"))["page"]()


def test_page_of_the_apis_is_up_to_date(page):
    written = (ROOT / "docs" / "reference" / "apis.md").read_text(encoding="utf-8")
    assert written == page, "run: python -m tools.kafka_apis_page"


def test_every_api_of_kafka_stands_there_once(page):
    from broker_sim.protocol.release import find_release

    rows = [
        line.split(" | ")[1]
        for line in page.partition("## Versions of older releases")[0].splitlines()
        if line[2:3].isdigit()
    ]
    assert sorted(rows) == sorted(key.api_name for key in find_release().apis)
