"""A real Chromium without a window, and a page of it that notes errors and requests to other hosts."""

from typing import Final
from urllib.parse import urlsplit

import pytest

from tools.browsers import REMEDY, find_browser

PATH = find_browser()
ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what runs a browser, which is an outside client."""
    for item in items:
        if "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker("clients")


@pytest.fixture(scope="module")
def chromium(require_or_skip):
    """The browser; without it, or playwright to drive it, a test is skipped, and fails where all is required.

    Playwright has a loop that runs in this thread until its block ends: no other module's tests may meet it.
    """
    if PATH is None:
        require_or_skip(REMEDY)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        require_or_skip("playwright is missing: pip install playwright")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=PATH, args=ARGUMENTS)
        yield browser
        browser.close()


class Looked:
    """A page that is looked at, and what it should not do."""

    def __init__(self, page):
        self.page = page
        self.errors = []
        self.hosts = set()
        page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.hosts.add(urlsplit(request.url).netloc))

    def unnamed(self):
        """Return the elements of the accessibility tree that have no name and should."""
        return unnamed(self.page)


USED: Final = {
    "button",
    "link",
    "textbox",
    "searchbox",
    "combobox",
    "slider",
    "checkbox",
    "spinbutton",
    "img",
    "image",
    "region",
    "dialog",
    "table",
}
"""Roles whose elements a screen reader announces by name, or that somebody uses."""


def unnamed(page):
    """Return what the accessibility tree, as Chromium computes it, has without a name: roles with their elements."""
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    without = [
        each
        for each in nodes
        if not each["ignored"] and each["role"]["value"] in USED and not each.get("name", {}).get("value", "").strip()
    ]
    html = []
    for each in without:
        node = session.send("DOM.describeNode", {"backendNodeId": each["backendDOMNodeId"]})["node"]
        html.append(f"{each['role']['value']}: <{node['localName']} {node.get('attributes')}>")
    return html


@pytest.fixture
def looked(chromium):
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    yield Looked(context.new_page())
    context.close()
