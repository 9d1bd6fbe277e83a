"""Finds a browser for tests and pictures of the page and the reports."""

from __future__ import annotations

import shutil
from typing import Final

NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
REMEDY: Final = "there is no browser: apt-get install -y --no-install-recommends chromium"


def find_browser() -> str | None:
    """Return the path of the first installed browser, None without one; `REMEDY` says how to install it."""
    return next(filter(None, map(shutil.which, NAMES)), None)
