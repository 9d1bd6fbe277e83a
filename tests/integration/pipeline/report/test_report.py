"""The report in a browser: every chart is drawn, and nothing is fetched."""

import os
import re
import shutil
import subprocess

import pytest

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
  document.body.dataset.drawn = drawn.join(" ");
  document.body.dataset.fetched = performance.getEntriesByType("resource").length;
});
</script>
"""
"""Reports of each chart its size, and how many of its curves or data fields are drawn."""


@pytest.fixture(scope="session")
def chromium():
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        reason = "chromium is not installed: apt-get install --no-install-recommends chromium"
        if os.environ.get("CI") == "true":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    return found


@pytest.fixture(scope="session")
def directory(spark, tmp_path_factory, life, observation, write_lines):
    """Tables of every job, made of few rows."""
    from integration.pipeline.jobs import ingest, latency, lifecycle, occupancy, parity, sweep

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
    return out


@pytest.fixture(scope="session")
def page(spark, directory):
    from integration.pipeline.report import report

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
    from integration.pipeline.report import report

    (tmp_path / "sweep_summary").symlink_to(directory / "sweep_summary")
    report.run(spark, str(tmp_path), str(tmp_path / "page.html"))
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    for job in ("latency", "occupancy", "lifecycle", "parity"):
        assert f"the job <code>{job}</code> has not run" in text


def test_a_page_that_cannot_be_written_is_refused(spark, directory, tmp_path):
    from integration.pipeline.errors import PipelineError
    from integration.pipeline.report import report

    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(PipelineError, match="choose another --output"):
        report.run(spark, str(directory), str(tmp_path / "file" / "page.html"))


def test_report_without_tables_is_refused(spark, tmp_path):
    from integration.pipeline.errors import PipelineError
    from integration.pipeline.report import report

    with pytest.raises(PipelineError, match="no table to report on"):
        report.run(spark, str(tmp_path), str(tmp_path))


@pytest.fixture
def measure(chromium, tmp_path):
    """Return a function that opens a page and returns its pictures' (width, height, data)."""

    def run(page):
        copy = tmp_path / "report.html"
        copy.write_text(page.replace("</body>", f"{MEASURE}</body>"), encoding="utf-8")
        done = subprocess.run(
            [
                chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1200,1000",
                "--virtual-time-budget=5000", "--dump-dom", copy.as_uri(),
            ],
            capture_output=True, text=True, check=True, timeout=CHROMIUM_TIMEOUT_S,
        )  # fmt: skip
        drawn = re.search(r'data-drawn="([^"]*)"', done.stdout)
        assert drawn, done.stderr[-1000:]
        assert 'data-fetched="0"' in done.stdout
        return [tuple(map(int, size.split("x"))) for size in drawn[1].split()]

    return run


def test_charts_are_drawn_in_a_browser(page, measure):
    pictures = measure(page)
    assert len(pictures) == PICTURES
    for width, height, data in pictures:
        assert width > 600
        assert height > 80
        assert data > 0


def test_axes_without_data_do_not_count_as_a_chart(page, measure):
    bare = re.sub(r"(?s)<path d=[^>]*stroke: #(?:1f6fb2|d9741a)[^>]*>|<image .*?>", "", page)
    assert [data for _, _, data in measure(bare)] == [0] * PICTURES
