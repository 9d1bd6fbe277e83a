"""The files of the page need nothing from elsewhere, and each import of theirs is one of them."""

import json
import re

import pytest

from broker_sim.page import files
from broker_sim.page.changes import changes

MODULES = [name for name in files.names() if name.endswith(".js")]


@pytest.mark.parametrize("name", MODULES)
def test_imports_of_a_module_are_files_of_the_page(name):
    imports = re.findall(r'from "([^"]+)"', files.read(name))
    assert {each.removeprefix("page/") for each in imports} <= set(MODULES)


@pytest.mark.parametrize("name", files.names())
def test_no_file_refers_to_another_host(name):
    addresses = set(re.findall(r"\w+://[^\s\"'`)]+", files.read(name)))
    assert addresses <= {"http://www.w3.org/2000/svg"}


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_small_and_says_what_it_is(name):
    text = files.read(name)
    assert text.startswith("// ")
    assert len(text.splitlines()) <= 300


def test_recorded_file_has_modules_style_and_data_inside():
    html = files.recorded_html("a <title> & more", "DATA")
    import_map = json.loads(re.search(r'<script type="importmap">(.*?)</script>', html).group(1))
    assert set(import_map["imports"]) == {f"page/{name}" for name in MODULES}
    assert all(address.startswith("data:") for address in import_map["imports"].values())
    assert 'id="recording">DATA</script>' in html
    assert "<title>a &lt;title> &amp; more</title>" in html
    assert "src=" not in html.replace(files.read("style.css"), "")


def test_reports_have_the_colours_and_tables_of_the_page_and_none_of_its_panels():
    style = files.report_style()
    assert "--accent" in style
    assert 'data-theme="dark"' in style
    assert "td.number" in style
    assert ".panel" not in style
    assert len(style) < len(files.read(files.STYLE)) / 2


def test_changes_are_the_parts_that_differ():
    before = {"broker/1": {"state": "running"}, "broker/2": {"state": "running"}, "group/a": {}}
    after = {"broker/1": {"state": "running"}, "broker/2": {"state": "dead"}, "group/b": {}}
    assert changes(before, after) == {"set": {"broker/2": {"state": "dead"}, "group/b": {}}, "gone": ["group/a"]}
