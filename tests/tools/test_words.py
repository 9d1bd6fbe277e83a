"""Docstrings can be read alone: they name the thing, and do not answer a question that nobody asked."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ANSWER = re.compile(
    r'^ *"""(So (many|much|long|often|far)|Of|That|Those|Tell that|By which|After which|As whom|Whether nobody)\b',
    re.MULTILINE,
)
QUESTION = re.compile(r'^ *"""(What|Who|Which)\b', re.MULTILINE)
QUESTIONS_NOBODY_ASKED = [
    ("So many a process takes at a time.", "Number of tasks handed to a process at once."),
    ("Of a directory.", "Longest directory name a broker accepts, in characters."),
    ("As whom it owns partitions.", "The identity under which this member's partitions are recorded."),
    ("Tell that the time is over.", "Answer the request with REQUEST_TIMED_OUT."),
]


@pytest.mark.parametrize("package", ["broker_sim", "purgatory", "integration", "tools"])
def test_docstrings_can_be_read_alone(package):
    answers = [
        f"{path.relative_to(ROOT)}: {match[0].strip()}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for match in ANSWER.finditer(path.read_text(encoding="utf-8"))
    ]
    assert answers == []


@pytest.mark.parametrize("package", ["broker_sim", "purgatory", "integration", "tools"])
def test_docstrings_name_the_thing_instead_of_asking_what_it_is(package):
    questions = [
        f"{path.relative_to(ROOT)}: {match[0].strip()}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for match in QUESTION.finditer(path.read_text(encoding="utf-8"))
    ]
    assert questions == []


@pytest.mark.parametrize(("before", "after"), QUESTIONS_NOBODY_ASKED)
def test_docstring_that_answers_a_question_is_found(before, after):
    assert ANSWER.search(f'    """{before}"""')
    assert not ANSWER.search(f'    """{after}"""')
