"""Finds the browser in which the page and the reports are looked at."""

from __future__ import annotations

import shutil
from typing import Final

NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
REMEDY: Final = "there is no browser: apt-get install -y --no-install-recommends chromium"


def find_browser() -> str | None:
    """Return the path of the first browser that is installed, None without one; `REMEDY` says how to get it."""
    return next(filter(None, map(shutil.which, NAMES)), None)
