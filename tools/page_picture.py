"""Takes the documentation's picture of the page from a real cluster: `python -m tools.page_picture`.

Needs Chromium, and playwright (extra `dev`). The picture is docs/operate/page.png.
"""

from __future__ import annotations

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from broker_sim import Cluster
from tools.browsers import REMEDY, find_browser

FILE = Path(__file__).parents[1] / "docs" / "operate" / "page.png"
RECORDS = 60
CONFIGS = {"replica.fetch.wait.max.ms": "5000"}
"""Configurations that make followers' fetches wait long enough to be visible."""


def main() -> None:
    """Open the page of a cluster with a paused broker and a slow link, and write its picture."""
    path = find_browser()
    if path is None:
        sys.exit(REMEDY)
    with (
        Cluster(3, topics=["orders:6:3", "payments:3:3"], configs=CONFIGS, control=True) as kafka,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 860}, color_scheme="dark")
        page.goto(kafka.control_url or "")
        page.locator(".dot").first.wait_for()
        kafka.set_link(1, 3, delay_ms=80)
        for number in range(RECORDS):
            kafka.produce("orders", f"order {number}", partition=number % 6)
        kafka.pause(2)
        page.get_by_text("broker 2 is paused").wait_for()
        page.wait_for_timeout(1_000)
        page.screenshot(path=FILE)
        browser.close()


if __name__ == "__main__":
    main()
