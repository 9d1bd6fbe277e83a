"""Links between the pages lead somewhere, and every block is written so that a test runs it."""

import re
import runpy
from pathlib import Path

import pytest

LIBRARY = runpy.run_path(str(Path(__file__).with_name("pages.py")))
ROOT, PAGES, read_page = LIBRARY["ROOT"], LIBRARY["PAGES"], LIBRARY["read_page"]
LINKED = [*PAGES, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]
LINK = re.compile(r"\]\(([^)\s]+)\)")

every_page = pytest.mark.parametrize("page", PAGES, ids=LIBRARY["name_of"])


def _headings(document):
    """Return the fragments that stand for the headings of a document, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", read_page(document).prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("document", LINKED, ids=LIBRARY["name_of"])
def test_relative_links_lead_to_files_and_headings(document):
    broken = []
    for link in LINK.findall(read_page(document).prose):
        if "://" in link:
            continue
        path, _, fragment = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        if not target.exists() or (fragment and fragment not in _headings(target)):
            broken.append(link)
    assert broken == []


@every_page
def test_blocks_say_how_they_are_run(page):
    for block in read_page(page).blocks:
        assert block.language in LIBRARY["FLAGS"], f"{block.place}: language {block.language!r}"
        assert block.words.keys() <= LIBRARY["FLAGS"][block.language], block.place
        if "by" in block.words:
            assert (ROOT / block.words["by"]).is_file(), block.place


@every_page
def test_blocks_from_a_file_are_that_file(page):
    for block in read_page(page).blocks:
        if "from" in block.words:
            assert block.text == (ROOT / block.words["from"]).read_text("utf-8"), block.place


@every_page
def test_commands_stand_in_console_blocks_only(page):
    document = read_page(page)
    indented = re.findall(r"\n\n    .*", document.prose)
    assert indented == [], "take a fenced block, which is run"
    assert [b.place for b in document.blocks if b.language == "text" and "$ " in b.text] == []


@every_page
def test_files_of_a_page_are_used_by_its_commands(page):
    blocks = read_page(page).blocks
    typed = "".join(block.text for block in blocks if block.language == "console")
    for name in [block.words["file"] for block in blocks if "file" in block.words]:
        assert name in typed, name


def test_every_page_stands_in_the_index():
    index = LIBRARY["DOCS"] / "index.md"
    links = {link.partition("#")[0] for link in LINK.findall(read_page(index).prose)}
    assert {LIBRARY["name_of"](page) for page in PAGES[1:] if page != index} == links


def test_versions_of_the_clients_are_those_that_are_tested():
    methods = runpy.run_path(str(ROOT / "tests" / "clients" / "test_every_method.py"))
    pinned = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().split() if "==" in line)
    page = read_page(LIBRARY["DOCS"] / "reference" / "clients.md")
    for client, older in methods["OLDER"].items():
        row = re.search(rf"^\| {client}\b[^|]*\| (.*) \|$", page.prose, re.MULTILINE)
        assert row[1].split(", ") == [pinned[client], *older]
