"""A real Chromium without a window, and a page of it that notes errors and requests to other hosts."""

from urllib.parse import urlsplit

import pytest

from tools.browsers import REMEDY, find_browser

PATH = find_browser()
ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]


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


@pytest.fixture
def looked(chromium):
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    yield Looked(context.new_page())
    context.close()
