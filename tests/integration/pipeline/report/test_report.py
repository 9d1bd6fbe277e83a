"""The report in a browser: every chart is drawn, and nothing is fetched."""

import os
import re
import subprocess

import pytest

from tools.browsers import REMEDY, find_browser

pytestmark = pytest.mark.spark

T = 1_700_000_000_000
CHROMIUM_TIMEOUT_S = 120
PICTURES = 5
MEASURE = """
<script>
addEventListener("load", () => {
  const colours = ["rgb(31, 111, 178)", "rgb(217, 116, 26)"];
  const drawn = [...document.querySelectorAll("figure svg")].map(svg => {
    const box = svg.getBoundingClientRect();
    const data = [...svg.querySelectorAll("path, image")].filter(shape => {
      const size = shape.getBoundingClientRect();
      const coloured = colours.includes(getComputedStyle(shape).stroke);
      return (coloured || shape.tagName === "image") && size.width + size.height > 100;
    });
    return [Math.round(box.width), Math.round(box.height), data.length].join("x");
  });
  const texts = [...document.querySelectorAll("figure text")].map(
    text => text.getBoundingClientRect().height);
  document.body.dataset.smallest = Math.min(...texts);
  document.body.dataset.beyond = document.documentElement.scrollWidth - innerWidth;
  const lines = [...document.querySelectorAll("[aria-label='How many operations were parked'] path")]
    .filter(shape => colours.includes(getComputedStyle(shape).stroke))
    .map(shape => shape.getBoundingClientRect())
    .filter(box => box.width > 100)
    .map(box => [box.left, box.top, box.right, box.bottom].map(Math.round).join("x"));
  document.body.dataset.lines = lines.join(" ");
  document.body.dataset.drawn = drawn.join(" ");
  document.body.dataset.fetched = performance.getEntriesByType("resource").length;
});
</script>
"""
"""Tells of each chart its size and how many of its curves or data fields are drawn; where the lines of
occupancy are; the height of the smallest text; and how far the page is wider than the window."""
NARROW, WIDE = 700, 1300
READABLE_PX = 10
MARGINS_PX = 120


@pytest.fixture(scope="session")
def chromium():
    path = find_browser()
    if path is None:
        if os.environ.get("CI") == "true":
            pytest.fail(REMEDY, pytrace=False)
        pytest.skip(REMEDY)
    return path


@pytest.fixture(scope="session")
def directory(spark, tmp_path_factory, life, observation, write_lines):
    """Tables of every job, made of few rows."""
    from broker_sim_integration.pipeline.jobs import chaos, ingest, latency, lifecycle, occupancy, parity, sweep
    from broker_sim_integration.pipeline.spark import tables

    out = tmp_path_factory.mktemp("report")
    events = [
        event
        for number in range(60)
        for event in life(
            number,
            T + number * 500,
            T + number * 500 + number * 20 + 1,
            "expired" if number % 7 == 0 else "completed",
            broker=number % 3 + 1,
            purgatory=("Produce", "Fetch")[number % 2],
            keys=[f"t-{number % 4}"],
        )
    ]
    seen = [
        observation(side=side, attempt=number, elapsed_ms=float(number % 9))
        for side in ("kafka", "sim")
        for number in range(40)
    ]
    broken = life(777, T, T + 5)[1:]
    trace = write_lines(out / "trace.jsonl", [*events, *seen, *broken, "<script>alert(1)</script>"])
    ingest.run(spark, [trace], str(out))
    for job in (lifecycle, latency, occupancy, parity):
        job.run(spark, str(out), str(out))
    plan = sweep.SweepPlan(
        {
            "request_timeout_ms": [500, 5_000],
            "replica_lag_time_max_ms": [2_000, 9_000],
            "failures_per_minute": [6.0],
            "duration_ms": [5_000],
        },
        repeats=1,
    )
    sweep.run(spark, plan, str(out), tasks=1)
    outcomes = spark.createDataFrame([(7, "<b>lost</b>", "", 9, 0.2, None, None)], chaos.OUTCOME)
    schedule = "seed=7 brokers=3\n100 crash worker-1 for=100"
    shrunk = spark.createDataFrame([(7, "<b>lost</b>", "crash", 1, schedule, 14, "d", True, "told")], chaos.SHRUNK)
    test = chaos.NamedTest("shop:test_orders")
    tables.overwrite(chaos.distinct_failures(outcomes, shrunk), str(out), "chaos_failures")
    tables.overwrite(chaos.summary(outcomes, test), str(out), "chaos_summary")
    return out


@pytest.fixture(scope="session")
def page(spark, directory):
    from broker_sim_integration.pipeline.report import report

    answer = report.run(spark, str(directory), str(directory))
    assert answer == f"{directory / 'report.html'} with {PICTURES} pictures"
    return (directory / "report.html").read_text(encoding="utf-8")


def test_every_section_shows_its_table(page):
    for text in (
        "How long operations waited",
        "How many operations were parked",
        "The busiest keys",
        "Produce t-0 @ 1",
        "never tried",
        "not one JSON object",
        "The simulator compared with a real Kafka",
        "How often acks=all would time out",
        "shop:test_orders: 1 of 1 seeds failed, at 5.0 seeds a second and core",
        "100 crash worker-1 for=100",
    ):
        assert text in page
    assert "has not run" not in page


def test_the_page_refers_to_nothing_outside_and_runs_no_script(page):
    assert "<script" not in page
    references = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert all(ref.startswith(("#", "data:")) for ref in references)


def test_ids_of_charts_do_not_collide(page):
    clips = [set(re.findall(r'<clipPath id="(\w+)"', svg)) for svg in page.split("<svg")[1:]]
    assert sum(map(len, clips)) == len(set().union(*clips))


def test_a_section_without_its_table_names_the_job(spark, directory, tmp_path):
    from broker_sim_integration.pipeline.report import report

    (tmp_path / "sweep_summary").symlink_to(directory / "sweep_summary")
    report.run(spark, str(tmp_path), str(tmp_path / "page.html"))
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    for job in ("latency", "occupancy", "lifecycle", "parity"):
        assert f"the job <code>{job}</code> has not run" in text


def test_a_page_that_cannot_be_written_is_refused(spark, directory, tmp_path):
    from broker_sim_integration.pipeline.errors import PipelineError
    from broker_sim_integration.pipeline.report import report

    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(PipelineError, match="choose another --output"):
        report.run(spark, str(directory), str(tmp_path / "file" / "page.html"))


def test_report_without_tables_is_refused(spark, tmp_path):
    from broker_sim_integration.pipeline.errors import PipelineError
    from broker_sim_integration.pipeline.report import report

    with pytest.raises(PipelineError, match="no table to report on"):
        report.run(spark, str(tmp_path), str(tmp_path))


@pytest.fixture
def measure(chromium, tmp_path):
    """Return a function that opens a page, in a window of a width, and returns what it tells."""

    def run(page, width=WIDE):
        copy = tmp_path / "report.html"
        copy.write_text(page.replace("</body>", f"{MEASURE}</body>"), encoding="utf-8")
        done = subprocess.run(
            [
                chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},1000",
                "--virtual-time-budget=5000", "--dump-dom", copy.as_uri(),
            ],
            capture_output=True, text=True, check=True, timeout=CHROMIUM_TIMEOUT_S,
        )  # fmt: skip
        told = dict(re.findall(r'data-(\w+)="([^"]*)"', done.stdout))
        assert "drawn" in told, done.stderr[-1000:]
        assert told["fetched"] == "0"
        return told

    return run


def numbers(text):
    return [tuple(map(int, group.split("x"))) for group in text.split()]


@pytest.mark.parametrize("window", [NARROW, WIDE])
def test_charts_are_drawn_in_a_browser(page, measure, window):
    told = measure(page, window)
    pictures = numbers(told["drawn"])
    assert len(pictures) == PICTURES
    for width, height, data in pictures:
        assert width >= min(window - MARGINS_PX, 1000)
        assert height > 80
        assert data > 0
    assert float(told["smallest"]) >= READABLE_PX
    assert int(told["beyond"]) <= 0


def test_no_line_of_occupancy_hides_another(page, measure):
    lines = numbers(measure(page)["lines"])
    assert len(lines) == 2 * 3, "two purgatories of three brokers"
    for number, (left, top, right, bottom) in enumerate(lines):
        for other_left, other_top, other_right, other_bottom in lines[:number]:
            apart = right <= other_left or other_right <= left
            assert apart or bottom <= other_top or other_bottom <= top


def test_axes_of_every_panel_have_names_with_units(page):
    for title, names in {
        "The simulator compared with a real Kafka": ["late, ms", "share of responses"],
        "How long operations waited": ["waited, ms", "share of operations"],
        "How many operations were parked": ["seconds since the first event", "parked"],
    }.items():
        (picture,) = re.findall(rf'(?s)aria-label="{title}">(.*?)</figure>', page)
        panels = picture.count('id="axes_')
        assert panels > 0
        assert [picture.count(f">{name}</text>") for name in names] == [panels] * 2


def test_parity_comes_first_and_missing_sections_last(spark, page, directory, tmp_path):
    from broker_sim_integration.pipeline.report import report

    titles = re.findall(r"<h2>(.*?)</h2>", page)
    assert titles[:2] == ["The simulator compared with a real Kafka", "Agreement by scenario"]
    (tmp_path / "occupancy").symlink_to(directory / "occupancy")
    report.run(spark, str(tmp_path), str(tmp_path / "page.html"))
    titles = re.findall(r"<h2>(.*?)</h2>", (tmp_path / "page.html").read_text(encoding="utf-8"))
    assert titles[:2] == ["How many operations were parked", "The simulator compared with a real Kafka"]


def test_axes_without_data_do_not_count_as_a_chart(page, measure):
    bare = re.sub(r"(?s)<path d=[^>]*stroke: #(?:1f6fb2|d9741a)[^>]*>|<image .*?>", "", page)
    assert [data for _, _, data in numbers(measure(bare)["drawn"])] == [0] * PICTURES
