"""Links between the documents lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE_BLOCK = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def _headings(document):
    """Return the fragments that stand for the headings of a document, as GitHub makes them."""
    text = CODE_BLOCK.sub("", document.read_text("utf-8"))
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_relative_links_lead_to_files_and_headings(document):
    broken = []
    for link in LINK.findall(CODE_BLOCK.sub("", document.read_text("utf-8"))):
        if "://" in link:
            continue
        path, _, fragment = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        if not target.exists() or (fragment and fragment not in _headings(target)):
            broken.append(link)
    assert broken == []
