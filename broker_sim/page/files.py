"""The files of the page, as served by the control port and as embedded in one HTML file.

Modules import each other by names such as `page/dom.js`; an import map resolves them to the control port or to the
file itself.
"""

from __future__ import annotations

import base64
import json
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Final

CONTENT_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
STYLE: Final = "style.css"
START: Final = 'import "page/main.js";'
"""The script of the page's HTML."""
_END_OF_SHARED: Final = "/* The page alone;"
_STATIC: Final = files("broker_sim.page") / "static"


@cache
def read(name: str) -> str:
    """Return the text of one file of the page."""
    return (_STATIC / name).read_text("utf-8")


@cache
def names() -> tuple[str, ...]:
    """Return the names of the files that the page's HTML refers to."""
    return tuple(sorted(each.name for each in _STATIC.iterdir() if each.name.endswith(tuple(CONTENT_TYPES))))


@cache
def report_style() -> str:
    """Return the page's CSS for colours, text and tables, for other HTML reports."""
    return read(STYLE).partition(_END_OF_SHARED)[0]


@cache
def live_html() -> str:
    """Return the HTML that shows the cluster of the control port that serves it."""
    modules = {f"page/{name}": f"/page/{name}" for name in names() if name.endswith(".js")}
    return _html(f'<link rel="stylesheet" href="/page/{STYLE}">', modules, "")


@cache
def live_policy() -> str:
    """Return the Content-Security-Policy of the live page: no other origins, and no framing."""
    import_map = live_html().partition('<script type="importmap">')[2].partition("</script>")[0]
    scripts = " ".join(f"'sha256-{_base64(sha256(text.encode()).digest())}'" for text in (import_map, START))
    return (
        f"default-src 'self'; script-src 'self' {scripts}; img-src 'self' data:; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    )


def recorded_html(title: str, data: str) -> str:
    """Return one self-contained HTML file; `data` is the input of `recording.js`, base64 of compressed JSON."""
    modules = {
        f"page/{name}": f"data:text/javascript;base64,{_base64(read(name).encode())}"
        for name in names()
        if name.endswith(".js")
    }
    style = f"<style>\n{read(STYLE)}</style>"
    recording = f'<script type="application/gzip" id="recording">{data}</script>'
    return _html(style, modules, recording, title)


def _html(style: str, modules: dict[str, str], recording: str, title: str = "broker-sim") -> str:
    escaped = title.replace("&", "&amp;").replace("<", "&lt;")
    return read("index.html").format(
        title=escaped,
        style=style,
        import_map=json.dumps({"imports": modules}),
        recording=recording,
        start=START,
        icon=_base64(read("icon.svg").encode()),
    )


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
