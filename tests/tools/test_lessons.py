"""The lessons of the page: each plays to its end, what its steps say holds, and Kafka's rows are as recorded."""

import sys
from dataclasses import replace

import pytest
from broker_sim_integration.comparison.recorded import RecordedSide

from tools.playground import lesson_files

sys.path.insert(0, str(lesson_files.HERE))
import playground_lessons as lessons

sys.path.remove(str(lesson_files.HERE))

LESSONS = lessons.lessons()
MOST_STEPS = 10


@pytest.fixture(scope="module")
def recording():
    """What a real Kafka answered in all scenarios of the lessons."""
    return lesson_files.recording([part.scenario for lesson in LESSONS for part in lesson.parts])


def test_there_are_twelve():
    assert len({lesson.name for lesson in LESSONS}) == 12


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)
def test_lesson_holds_and_its_rows_are_as_recorded(lesson, recording):
    played = lessons.play(lesson, recording)
    assert sum(len(part["steps"]) for part in played["parts"]) <= MOST_STEPS
    for part in played["parts"]:
        assert part["agree"] == part["rows"]
        assert [step["row"]["step"] for step in part["steps"] if step["row"] and not step["row"]["agrees"]] == []
    assert any(step["row"] for part in played["parts"] for step in part["steps"])


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)
def test_scenarios_are_recorded_as_they_are_now(lesson):
    recorded = RecordedSide()
    for part in lesson.parts:
        assert recorded.run(lessons.scenario_of(part), 1).skipped is None


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ({"waits": ["Fetch"]}, "waits is []"),
        ({"error": "NOT_ENOUGH_REPLICAS"}, "error is 'NONE'"),
        ({"partition": {"isr": [1, 2]}}, "partition.isr is [1, 2, 3]"),
        ({"row": {"base_offset": 7}}, "row.base_offset is 0"),
        ({"at": "seen nothing of the kind"}, "the moment has not come"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_lesson_fails_with_a_claim_that_does_not_hold(claim, text, recording):
    lesson = next(each for each in LESSONS if each.name == "timeout")
    (part,) = lesson.parts
    wrong = replace(lesson, parts=[replace(part, steps=[replace(part.steps[0], **claim)])])
    with pytest.raises(lessons.LessonError) as failure:
        lessons.play(wrong, recording)
    assert text in str(failure.value)
