"""The pages of the Python API are what the docstrings say."""

import builtins
import collections.abc
import re
import runpy
import typing
from pathlib import Path

import pytest

import broker_sim

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("name", "build"),
    [("api.md", "build_page"), ("purgatory.md", "build_purgatory_page"), ("http.md", "build_http_page")],
)
def test_page_is_up_to_date(name, build):
    page = runpy.run_path(str(ROOT / "tools" / "api_page.py"))[build]
    written = (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8")
    assert written == page(), "run: python -m tools.api_page"


def test_names_in_signatures_are_public():
    page = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python signature\n(.*?)```", page, re.DOTALL)
    lines = re.findall(r"^- `(?:async )?\w+(\(.*?)`: ", page, re.MULTILINE)
    named = set(re.findall(r"\b[A-Z]\w*[a-z]\w*\b", re.sub(r"'.*?'", "", "\n".join(blocks + lines))))
    known = {*dir(builtins), *dir(typing), *dir(collections.abc), "Path"}
    assert {"Mapping", "DiskOptions", "Loss"} <= named
    assert named - known - set(broker_sim.__all__) == set()


@pytest.mark.parametrize("name", ["api.md", "purgatory.md"])
def test_each_name_of_a_class_is_listed_once(name):
    page = (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8")
    for section in page.split("\n## ")[1:]:
        names = re.findall(r"^- `(?:async )?(\w+)", section, re.MULTILINE)
        assert len(names) == len(set(names)), section.partition("\n")[0]
