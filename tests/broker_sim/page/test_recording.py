"""A recording: what it keeps of a run, what it leaves out of a file that would be too large, and how it plays."""

import asyncio
import base64
import gzip
import json
import re

import pytest

from broker_sim.chaos import Schedule
from broker_sim.chaos.faults.action import Action
from broker_sim.chaos.recorder import bands_of
from broker_sim.chaos.run import ScheduledRun
from broker_sim.chaos.timeline import FAULT, Moment
from broker_sim.page import recording as module
from broker_sim.page.recording import (
    RecordedMoment,
    RecordedRequest,
    RecordedRun,
    Recording,
    first_difference,
    page_of,
    runs_of_html,
)

SHOWN_MS = 30_000
SCHEDULE = """
    seed=1 brokers=3 workers=1 latency_ms=0 duration_ms=6000
    500 pause broker-2 for=2000
    1000 crash worker-1 for=300
"""


async def work():
    """A worker that never ends by itself."""
    await asyncio.Event().wait()


async def fails(chaos):
    """A test that fails when the faults are over."""
    chaos.start(work)
    await chaos.kafka.create_topic("orders", partitions=2, replication_factor=3)
    await chaos.faults_over()
    raise AssertionError("an order <is> lost")


async def passes(chaos):
    """The same without its end."""
    chaos.start(work)
    await chaos.kafka.create_topic("orders", partitions=2, replication_factor=3)
    await chaos.faults_over()


def run(*, record):
    return ScheduledRun(Schedule.parse(SCHEDULE), observe=True, record=record).run_whole(fails)


@pytest.fixture(scope="module")
def outcome():
    return run(record=True)


def data_of(html):
    packed = re.search(r'id="recording">(.*?)</script>', html, re.DOTALL).group(1)
    return json.loads(gzip.decompress(base64.b64decode(packed)))["runs"][0]


def test_recorded_run_takes_the_same_course(outcome):
    plain = run(record=False)
    assert plain.recording is None
    assert (outcome.digest, outcome.virtual_s, outcome.moments) == (plain.digest, plain.virtual_s, plain.moments)


def test_recording_has_pictures_faults_and_the_time_line(outcome):
    data = data_of(page_of(outcome.recording.run("a run", outcome.text, outcome.virtual_s * 1_000)).html)
    times = [frame["at_ms"] for frame in data["frames"]]
    assert times == sorted(set(times))
    states = {frame["set"]["broker/2"]["state"] for frame in data["frames"] if "broker/2" in frame["set"]}
    assert {"running", "paused"} <= states
    pause = data["bands"][0]
    assert (pause["to_ms"] - pause["from_ms"], pause["on"]) == (2_000, ["broker-2"])
    assert {moment["who"] for moment in data["moments"]} >= {FAULT}
    assert "an order <is> lost" in data["failure"]


def test_recording_has_the_requests_between_brokers(outcome):
    fetches = [one for one in outcome.recording.requests if one.api == "Fetch" and one.client.startswith("replica-")]
    assert {one.client for one in fetches} == {"replica-1", "replica-2", "replica-3"}
    assert all(one.client != f"replica-{one.broker}" for one in fetches)
    waits_ms = {one.elapsed_ms for one in fetches if one.elapsed_ms is not None}
    assert 500 in waits_ms  # replica.fetch.wait.max.ms


def test_operation_that_waits_in_many_pictures_is_kept_once():
    recording = Recording()
    operation = {"id": 7, "due_ms": 500}
    for at_ms in range(0, 100, 10):
        recording.take(at_ms, {"purgatory/1/Fetch": {"completed": at_ms, "parked": [operation]}})
    data = data_of(page_of(recording.run("a run", None, 100)).html)
    assert data["operations"] == [operation]
    assert [frame["set"]["purgatory/1/Fetch"]["parked"] for frame in data["frames"]] == [[0]] * 10


def test_long_run_has_pictures_with_longer_steps(monkeypatch):
    monkeypatch.setattr(module, "MAX_PICTURES", 8)
    recording = Recording()
    for at_ms in range(0, 1_000, 10):
        if recording.is_due(at_ms):
            recording.take(at_ms, {"cluster": {"at": at_ms}})
    times = [frame["at_ms"] for frame in data_of(page_of(recording.run("a run", None, 1_000)).html)["frames"]]
    assert len(times) <= 8
    assert times[0] == 0
    assert times[-1] > 800


def test_file_that_would_be_too_large_is_cut_and_says_so(monkeypatch, tmp_path):
    recording = Recording()
    for at_ms in range(200):
        recording.take(at_ms, {"cluster": {"text": str(hash((at_ms, "x")) ** 20)}})
    recording.requests = [RecordedRequest(at_ms, 1, "app", 1, "Fetch", ()) for at_ms in range(500)]
    whole = page_of(recording.run("a run", None, 200)).html
    monkeypatch.setattr(module, "MAX_BYTES", len(whole) - 20_000)
    page = page_of(recording.run("a run", None, 200))
    cut = page.html
    assert len(cut) < len(whole) - 20_000
    assert "of 200 pictures" in data_of(cut)["cut"]
    assert data_of(cut)["cut"] in page.write(tmp_path / "run.html")
    assert data_of(cut)["frames"][-1]["at_ms"] == 199


def test_fault_without_an_end_lasts_until_the_end_of_the_run():
    pause, crash = Action(0, "pause", ("broker-1",), 9_000), Action(0, "crash", ("worker-1",))
    moments = [Moment(1.0, FAULT, pause.describe()), Moment(2.0, FAULT, crash.describe())]
    bands = list(bands_of(moments, [pause, crash], 5_000))
    assert [(band.from_ms, band.to_ms) for band in bands] == [(1_000, 5_000), (2_000, 2_000)]


def test_run_of_a_file_is_the_run_that_it_was_made_of(outcome):
    run = outcome.recording.run("a run", outcome.text, outcome.virtual_s * 1_000)
    [again] = runs_of_html(page_of(run).html)
    assert json.dumps(again.to_json()) == json.dumps(run.to_json())


def state_at_end(run):
    state = {}
    for frame in run.frames:
        state = {name: part for name, part in state.items() if name not in frame["gone"]} | frame["set"]
    return state


@pytest.mark.parametrize("count", [1, 2, 5, 6])
def test_run_with_every_second_picture_ends_in_the_same_state(count):
    recording = Recording()
    for number in range(count):
        recording.take(number, {"cluster": {"at": number}, f"group/{number % 3}": {}})
    run = recording.run("a run", None, count)
    halved = run.halved()
    assert len(halved.frames) == count // 2 + 1
    assert state_at_end(halved) == state_at_end(run)
    assert halved.frames[-1]["at_ms"] == count - 1


def run_of(*moments):
    return RecordedRun("a run", None, 100, moments=moments)


def test_first_difference_is_the_first_line_that_only_one_run_has():
    start, crash, end = (
        RecordedMoment(*each) for each in ((1, "worker-1", "starts"), (5, FAULT, "crash"), (9, "test", "ends"))
    )
    assert first_difference(run_of(start, end), run_of(start, end)) is None
    difference = first_difference(run_of(start, crash, end), run_of(start, end))
    assert difference == {"at_ms": 5, "here": "FAULT: crash", "there": "test: ends"}
    shorter = first_difference(run_of(start), run_of(start, end))
    assert shorter == {"at_ms": 9, "here": None, "there": "test: ends"}


@pytest.fixture
def page(looked, outcome, tmp_path):
    file = tmp_path / "run.html"
    file.write_text(page_of(outcome.recording.run("a run", outcome.text, outcome.virtual_s * 1_000)).html, "utf-8")
    looked.page.goto(file.as_uri())
    looked.page.locator("output.time").wait_for(timeout=SHOWN_MS)
    yield looked.page
    assert looked.errors == []
    assert looked.hosts == {""}


def shown_s(page):
    return float(page.locator("output.time").inner_text().removesuffix(" s"))


def test_file_opens_at_the_failure_and_says_what_failed(page, outcome):
    assert shown_s(page) == pytest.approx(outcome.virtual_s, abs=0.001)
    assert "an order <is> lost" in page.locator(".failure").inner_text()


def test_slider_shows_the_state_of_its_time(page, outcome):
    data = data_of(page_of(outcome.recording.run("a run", outcome.text, outcome.virtual_s * 1_000)).html)
    middle_ms = (data["bands"][0]["from_ms"] + data["bands"][0]["to_ms"]) // 2
    page.get_by_label("Time of the run, in ms").fill(str(middle_ms))
    page.locator('.broker[data-state="paused"]').wait_for(timeout=SHOWN_MS)
    assert shown_s(page) == middle_ms / 1_000
    page.get_by_label("Time of the run, in ms").fill(str(data["bands"][0]["to_ms"] + 500))
    page.locator('.broker[data-state="paused"]').wait_for(state="detached", timeout=SHOWN_MS)


def test_requests_between_brokers_are_arrows(page):
    page.goto(f"{page.url.partition('#')[0]}#t=1.250")
    arrows = page.locator(".course .request title").all_text_contents()
    assert any(re.fullmatch(r"Fetch of broker-\d to broker \d, 500 ms", text) for text in arrows), arrows


def test_course_is_as_wide_as_its_window_and_its_letters_are_not(page):
    for width in (700, 2_000):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function("""() => {
            const picture = document.querySelector(".course");
            return picture.viewBox.baseVal.width === picture.clientWidth;
        }""")


def test_clients_with_long_names_are_told_apart(looked, tmp_path):
    names = [f"aiokafka-producer-{number}" for number in (10, 11)]
    requests = tuple(RecordedRequest(5, 5, name, 1, "Produce", ()) for name in names)
    run = RecordedRun("a_test_with_a_long_name_and_no_blank:test_orders", None, 10.0, requests=requests)
    (tmp_path / "run.html").write_text(page_of(run, run).html, "utf-8")
    looked.page.set_viewport_size({"width": 700, "height": 900})
    looked.page.goto((tmp_path / "run.html").as_uri())
    looked.page.locator("output.time").wait_for(timeout=SHOWN_MS)
    assert looked.page.locator(".course .client text").all_text_contents() == [
        "aiokafka-…oducer-10",
        "aiokafka-…oducer-11",
    ]
    is_cut = "buttons => buttons.filter(button => button.scrollWidth > button.clientWidth).length"
    assert looked.page.locator(".side > button").evaluate_all(is_cut) == 0
    assert looked.page.locator(".cluster").is_visible()


def test_steps_go_from_event_to_event_of_what_is_chosen(page):
    page.keyboard.press("Home")
    begin_s = shown_s(page)
    page.get_by_label("Steps go to events of").select_option(FAULT)
    page.get_by_role("button", name="Next event (right arrow)").click()
    first_s = shown_s(page)
    page.get_by_role("button", name="Next event (right arrow)").click()
    second_s = shown_s(page)
    page.get_by_role("button", name="Previous event (left arrow)").click()
    assert begin_s < first_s < second_s
    assert shown_s(page) == first_s
    assert "pause" in page.locator(".panel-events li").first.inner_text()


def test_address_names_the_moment(page):
    page.goto(f"{page.url.partition('#')[0]}#t=1.250")
    page.wait_for_function("document.querySelector('output.time').textContent === '1.250 s'", timeout=SHOWN_MS)
    page.keyboard.press("Shift+ArrowRight")
    assert page.url.endswith("#t=1.260")


def test_run_plays_until_its_end(page, outcome):
    page.goto(f"{page.url.partition('#')[0]}#t={outcome.virtual_s - 0.1:.3f}")
    page.get_by_label("Speed").select_option("4")
    page.get_by_role("button", name="Play").click()
    page.get_by_role("button", name="Play").wait_for(timeout=SHOWN_MS)
    page.wait_for_function(
        f"parseFloat(document.querySelector('output.time').textContent) >= {outcome.virtual_s - 0.001}"
    )


@pytest.mark.parametrize(("name", "events"), [("broker 2", 2), ("worker-1", 3)])
def test_steps_go_through_the_events_of_a_broker_and_of_a_worker(page, name, events):
    partitions = page.locator('optgroup[label="Partitions"] option').all_inner_texts()
    assert partitions == ["orders-0", "orders-1"]
    page.keyboard.press("Home")
    page.get_by_label("Steps go to events of").select_option(name)
    times = []
    for _ in range(events):
        page.keyboard.press("ArrowRight")
        times.append(shown_s(page))
    assert times == sorted(set(times))
    texts = page.locator(".panel-events li").all_inner_texts()
    assert any(name.replace(" ", "-") in text.replace(" ", "-") for text in texts)


def group(name, state):
    return {"id": name, "type": "classic", "state": state, "coordinator": 1, "lag": 0, "assignor": "range",
            "members": [], "offsets": [], "share_partitions": []}  # fmt: skip


RUN_OF_GROUPS = RecordedRun(
    "a run",
    None,
    1_000,
    frames=[
        {"at_ms": 0, "set": {"group/shop": group("shop", "PreparingRebalance")}, "gone": []},
        {"at_ms": 300, "set": {"group/shop": group("shop", "Stable")}, "gone": []},
        {"at_ms": 600, "set": {"group/shop-2": group("shop-2", "Stable")}, "gone": []},
        {"at_ms": 900, "set": {}, "gone": ["group/shop"]},
    ],
    moments=[RecordedMoment(200, "test", "cart has an order"), RecordedMoment(250, "test", "cart-2 has none")],
    requests=[
        RecordedRequest(100, 20, "cart", 1, "Metadata", ()),
        RecordedRequest(450, None, "cart", 1, "Produce", ()),
        RecordedRequest(700, 1, "cart-2", 1, "Produce", ()),
    ],
)


@pytest.mark.parametrize(("name", "times_s"), [("group shop", [0.3, 0.9]), ("cart", [0.1, 0.2, 0.45])])
def test_steps_go_to_the_next_and_the_previous_event_of_a_group_and_of_a_client(looked, tmp_path, name, times_s):
    """Others whose names begin in the same way have their own."""
    file = tmp_path / "run.html"
    file.write_text(page_of(RUN_OF_GROUPS).html, "utf-8")
    looked.page.goto(f"{file.as_uri()}#t=0")
    looked.page.get_by_label("Steps go to events of").select_option(name)
    looked.page.locator("body").press("Home")

    def steps(key):
        times = []
        for _ in range(len(times_s) + 1):
            looked.page.locator("body").press(key)
            times.append(shown_s(looked.page))
        return times

    assert steps("ArrowRight") == [*times_s, 1.0]
    assert steps("ArrowLeft") == [*reversed(times_s), 0.0]
    assert looked.errors == []


@pytest.fixture
def page_of_two(looked, outcome, tmp_path):
    """The failing run, and beside it the one without its last fault."""
    run = outcome.recording.run("with the crash", outcome.text, outcome.virtual_s * 1_000)
    without = ScheduledRun(
        Schedule.parse(SCHEDULE.replace("1000 crash worker-1 for=300", "")), observe=True, record=True
    )
    beside = without.run_whole(passes).recording.run("without the crash", None, 6_000)
    file = tmp_path / "two.html"
    file.write_text(page_of(run, beside).html, "utf-8")
    looked.page.goto(file.as_uri())
    looked.page.locator("output.time").wait_for(timeout=SHOWN_MS)
    yield looked.page
    assert looked.errors == []
    assert looked.hosts == {""}


def test_everything_of_a_recorded_run_that_can_be_used_has_a_name(page_of_two, looked):
    assert page_of_two.get_by_label("Time of the run, in ms").is_visible()
    assert looked.unnamed() == []


def test_two_runs_lie_side_by_side_and_their_first_difference_is_found(page_of_two):
    page = page_of_two
    assert "crash worker-1" in page.locator(".difference").inner_text()
    page.get_by_role("button", name="First difference").click()
    crash = page.locator(".side").first.get_by_text("crash worker-1")
    assert crash.first.is_visible()
    assert page.locator(".side").nth(1).get_by_text("crash worker-1").count() == 0
    differs_s = shown_s(page)
    page.get_by_role("button", name="without the crash").click()
    assert shown_s(page) == differs_s
    assert page.locator(".pill").inner_text() == "recorded"
    shown = page.locator(".side > button[aria-pressed='true']")
    assert shown.all_inner_texts() == ["without the crash"]
    page.get_by_role("button", name="with the crash", exact=True).click()
    assert page.locator(".pill").inner_text() == "failed"
