"""The examples of docs/purgatory.md run as they stand."""

import re
from pathlib import Path

import pytest

DOCUMENT = Path(__file__).parents[2] / "docs" / "purgatory.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```", DOCUMENT.read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.threads
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda text: text.split("\n", maxsplit=1)[0])
def test_an_example_runs(example):
    exec(compile(example, DOCUMENT.name, "exec"), {})


@pytest.mark.threads
def test_the_first_example_prints_what_it_says(capsys):
    exec(compile(EXAMPLES[0], DOCUMENT.name, "exec"), {})
    assert capsys.readouterr().out == "NONE\n"
