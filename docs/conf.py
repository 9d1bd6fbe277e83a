"""How Sphinx makes the site of these pages: `make site` writes it to out/site.

The pages are Markdown that can be read without the site too: index.md lists them by plain links, of which the table of
contents is made here, and a link to a file outside docs/ leads to the repository. If `make playground` has made the
playground, it becomes a part of the site, and tests under chaos get a link that runs them there.
"""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from broker_sim.chaos.link import fragment, imported_files

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))

project = PYPROJECT["project"]["name"]
release = PYPROJECT["project"]["version"]
project_copyright = "the broker-sim authors, Apache License 2.0"

extensions = ["myst_parser"]
myst_heading_anchors = 4
exclude_patterns = ["conf.py"]
# Output with `...` in it is no whole JSON or Python; it is shown without colours.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_title = f"broker-sim {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["tables.js"]
html_show_sourcelink = False
html_copy_source = False

SECTION = re.compile(r"^## (?P<title>.*)\n(?P<text>(?:(?!## ).*\n?)*)", re.MULTILINE)
PAGE_LINK = re.compile(r"\]\((?P<page>[\w/-]+)\.md\)")
PROGRAM = re.compile(r"^```python(?: file=(?P<name>\w+)\.py)?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
MARKER = r"@pytest\.mark\.(?:chaos|virtual_time)\b(?:.*|\(\n(?: .*\n)*\))\n"
TEST = re.compile(rf"{MARKER}async def (?P<name>test_\w+)\((?:chaos|kafka)?\)")
SCRIPT = re.compile(r"^cluster = VirtualCluster\(", re.MULTILINE)
STARTS_PROCESSES = "start_program"
UNNAMED = "program"
"""Module of a program that the page gives no name."""
PLAYGROUND = ROOT / "out/playground"
LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<path>(?:\.\./)+[^)\s]+)\)")


def table_of_contents(index: str) -> str:
    """Return a hidden table of contents for each section of the index: the pages that the section links to."""
    tables = []
    for section in SECTION.finditer(index):
        pages = "\n".join(dict.fromkeys(PAGE_LINK.findall(section["text"])))
        tables.append(f"```{{toctree}}\n:hidden:\n:caption: {section['title']}\n\n{pages}\n```\n")
    return "\n".join(tables)


def with_repository_links(text: str, directory: Path, repository: str) -> str:
    """Return a page's text whose links to files outside docs/ lead to the repository; without one they are names."""

    def link(match: re.Match[str]) -> str:
        file, _, fragment = match["path"].partition("#")
        target = (directory / file).resolve()
        if target.is_relative_to(ROOT / "docs"):
            return match[0]
        path = target.relative_to(ROOT).as_posix()
        if not repository:
            return match["text"] if path in match["text"] else f"{match['text']} (`{path}`)"
        return f"[{match['text']}]({repository}/blob/main/{path}{'#' * bool(fragment)}{fragment})"

    return LINK.sub(link, text)


def with_run_links(text: str, playground: str) -> str:
    """Return a page's text with a link below each program that runs there: a test in virtual time, or a script."""
    programs = {match["name"]: match["text"] for match in PROGRAM.finditer(text) if match["name"]}

    def link(match: re.Match[str]) -> str:
        test = TEST.search(match["text"])
        if (test is None and SCRIPT.search(match["text"]) is None) or STARTS_PROCESSES in match["text"]:
            return match[0]
        name = match["name"] or UNNAMED
        files = imported_files(name, {**programs, name: match["text"]}.get)
        state = fragment(files, name, test["name"] if test else "")
        return f'{match[0]}\n\n```{{raw}} html\n<p class="run"><a href="{playground}{state}">Run it here</a></p>\n```'

    return PROGRAM.sub(link, text)


def add_playground(app: Sphinx, error: Exception | None) -> None:
    """Copy the playground into the site."""
    if error is None and PLAYGROUND.is_dir():
        shutil.copytree(PLAYGROUND, Path(app.outdir, "playground"), dirs_exist_ok=True)


def read_source(app: Sphinx, docname: str, source: list[str]) -> None:
    """Change the text of a page before it is parsed."""
    repository = PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]["custom"]["repository"]
    directory = Path(app.srcdir, docname).parent
    text = with_repository_links(source[0], directory, repository)
    if PLAYGROUND.is_dir():
        text = with_run_links(text, f"{'../' * docname.count('/')}playground/index.html")
    source[0] = f"{text}\n{table_of_contents(text)}" if docname == app.config.root_doc else text


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx what this module changes."""
    app.connect("source-read", read_source)
    app.connect("build-finished", add_playground)
    return {"parallel_read_safe": True}
