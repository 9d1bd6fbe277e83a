"""The live page in a real browser: it draws what is parked, its buttons act, and nothing comes from elsewhere."""

import asyncio
import re
from itertools import pairwise

import pytest

from broker_sim import Cluster
from tests.broker_sim.waiting import Waiting

ROWS = ".panel-waiting tbody tr"
SHOWN_MS = 30_000
PARKED = 10_000
PURGATORIES = ("Produce", "Fetch", "ShareFetch")
FRAMES = 40
MOST_WRITTEN = 80
"""Elements of the table of parked operations that may change in `FRAMES` frames: those of the rows in view."""


@pytest.fixture
def page(looked, cluster, parked_fetch):
    looked.page.goto(cluster.control_url)
    looked.page.locator(ROWS).first.wait_for(timeout=SHOWN_MS)
    yield looked.page
    assert looked.errors == []
    assert looked.hosts - {""} <= {cluster.control_url.removeprefix("http://")}


def test_what_is_parked_is_drawn_with_what_it_waits_for(page, cluster):
    row = page.locator(ROWS, has_text="orders-0").first
    row.wait_for(timeout=SHOWN_MS)
    assert "Fetch" in row.inner_text()
    assert "records" in row.inner_text()
    assert page.locator(".wheel .dot").count() > 0


def test_operation_leads_to_its_bucket_and_the_bucket_to_its_operations(page):
    page.locator(ROWS).first.click()
    page.locator(".dot.selected").wait_for(timeout=SHOWN_MS)
    words = page.locator(".wheel-words")
    words.get_by_text("The bucket opens in").wait_for(timeout=SHOWN_MS)
    page.locator(".wheel path.bucket:is(.fill-1, .fill-2)").first.dispatch_event("click")
    page.locator(".panel-waiting .chip").get_by_text("bucket").wait_for(timeout=SHOWN_MS)


def test_pause_pauses_and_says_what_it_did(page, cluster):
    page.get_by_role("article", name="Broker 2").get_by_role("button", name="Pause").click()
    page.get_by_text("as SIGSTOP does").wait_for(timeout=SHOWN_MS)
    assert cluster.broker(2).state == "paused"
    page.locator('.broker[data-state="paused"]').wait_for(timeout=SHOWN_MS)
    page.locator(".panel-events").get_by_text("broker 2 is paused").wait_for(timeout=SHOWN_MS)


def test_form_of_a_verb_calls_it(page, cluster):
    page.get_by_role("button", name="Actions").click()
    page.get_by_label("Search actions").fill("set link")
    page.locator(".verb:visible").first.click()
    page.get_by_label("source").fill("1")
    page.get_by_label("target").fill("2")
    page.get_by_label("delay ms").fill("70")
    page.get_by_role("button", name="set link").click()
    page.get_by_text("broker 1 → broker 2 70 ms").wait_for(timeout=SHOWN_MS)
    assert [(one.source, one.target, one.delay_ms) for one in cluster.status().links] == [(1, 2, 70)]


def test_broker_is_isolated_when_all_its_links_are_cut(page, cluster):
    buttons = page.get_by_role("article", name="Broker 1")
    cluster.set_link(1, 2, drop=True)
    page.get_by_text("broker 1 → broker 2 cut").wait_for(timeout=SHOWN_MS)
    buttons.get_by_role("button", name="Isolate").click()
    buttons.get_by_role("button", name="Reconnect").click(timeout=SHOWN_MS)
    buttons.get_by_role("button", name="Isolate").wait_for(timeout=SHOWN_MS)
    assert cluster.status().links == ()


def test_search_finds_partitions_of_the_whole_cluster(page, cluster):
    cluster.create_topic("many", 300, 1)
    page.get_by_label("Search partitions").fill("many-299")
    page.locator(".panel-partitions tbody tr", has_text="many-299").wait_for(timeout=SHOWN_MS)


def test_everything_that_can_be_used_has_a_name(page, looked):
    assert looked.unnamed() == []
    page.get_by_role("button", name="Actions").click()
    page.get_by_label("Search actions").fill("inject")
    page.locator(".verb:visible").first.click()
    page.get_by_label("api", exact=True).wait_for(timeout=SHOWN_MS)
    assert looked.unnamed() == []


def test_read_only_page_has_no_buttons_that_write(looked):
    with Cluster(1, control=True) as cluster:
        cluster._cluster._control._guard.is_read_only = True
        looked.page.goto(cluster.control_url)
        looked.page.get_by_text("read-only").wait_for(timeout=SHOWN_MS)
        looked.page.locator(".broker").wait_for(timeout=SHOWN_MS)
        assert looked.page.locator(".broker button:visible").count() == 0


def test_page_asks_for_the_token_of_the_port(looked):
    with Cluster(1, control=True, control_token="secret") as cluster:
        looked.page.goto(cluster.control_url)
        looked.page.get_by_label("Token of the control port").fill("secret")
        looked.page.get_by_role("button", name="Open").click()
        looked.page.locator(".broker").wait_for(timeout=SHOWN_MS)


async def _park_many(cluster):
    brokers = cluster._cluster.nodes.brokers.values()
    purgatories = [each for broker in brokers for each in broker.purgatories if each.name in PURGATORIES]
    for number in range(PARKED):
        operation = Waiting(60_000 + number * 37)
        purgatories[number % len(purgatories)].try_complete_else_watch(operation, [f"orders-{number % 300}"])


@pytest.fixture
def crowded_page(looked, cluster):
    """The page of a cluster in which 10 000 operations wait."""
    cluster.create_topic("orders", 300, 1)
    looked.page.goto(cluster.control_url)
    looked.page.locator(".hands line").first.wait_for(state="attached", timeout=SHOWN_MS)
    # Timers of the brokers are started in the thread of their loop only.
    asyncio.run_coroutine_threadsafe(_park_many(cluster), cluster._loop).result()
    looked.page.locator(".wheel-count").get_by_text(re.compile(r"^10\D0")).wait_for(timeout=SHOWN_MS)
    yield looked.page
    assert looked.errors == []


def test_bucket_of_late_deadlines_leads_to_its_operations_too(crowded_page):
    """Only the nearest deadlines are sent, until somebody selects another bucket."""
    count = crowded_page.evaluate("""() => {
        const countOf = ({textContent}) => Number(textContent.match(/: (\\d+) operations/)?.[1] ?? 0);
        const buckets = [...document.querySelectorAll(".wheel path.bucket:not(.fill-0)")];
        const latest = buckets.filter((each) => countOf(each) > 200).at(-1);
        latest.dispatchEvent(new MouseEvent("click", {bubbles: true}));
        return countOf(latest);
    }""")
    shown = crowded_page.locator(".panel-waiting .more")
    shown.get_by_text(f"200 of {count}, those that are due first").wait_for(timeout=SHOWN_MS)
    assert crowded_page.locator(ROWS).count() == 200
    crowded_page.locator(".panel-waiting .chip").click()
    shown.get_by_text("200 of 10").wait_for(timeout=SHOWN_MS)  # and some that the cluster has parked itself


def test_frame_writes_what_can_be_seen_however_much_is_parked(crowded_page):
    written = crowded_page.evaluate(
        """async (frames) => {
        const written = new Set();
        const observer = new MutationObserver((changes) => changes.forEach((one) => written.add(one.target)));
        const rows = document.querySelector(".panel-waiting tbody");
        observer.observe(rows, {subtree: true, childList: true, attributes: true});
        for (let frame = 0; frame < frames; frame += 1) await new Promise(requestAnimationFrame);
        return written.size;
    }""",
        FRAMES,
    )
    assert 0 < written <= MOST_WRITTEN


def test_rings_of_the_levels_do_not_overlap(crowded_page):
    """Also after a level has come, which makes the others narrower."""
    rings = crowded_page.evaluate("""() => [...document.querySelectorAll(".hands .blur")].map((one) => {
        const [radius, width] = ["r", "stroke-width"].map((name) => Number(one.getAttribute(name)));
        return [radius - width / 2, radius + width / 2];
    })""")
    assert len(rings) > 3
    assert all(outer <= inner for (_, outer), (inner, _) in pairwise(sorted(rings)))


def test_nothing_on_the_crowded_page_is_a_layer_of_its_own_but_the_hands(crowded_page):
    """A transform, a filter or an opacity makes the browser do for each element what it does for a whole picture."""
    own = crowded_page.evaluate("""() => [...document.querySelectorAll("#page *")].filter((one) => {
        const style = getComputedStyle(one);
        return [style.transform, style.filter, style.backdropFilter].some((value) => value !== "none" && value !== "")
            && !one.closest(".hands, .ring, .link, .node");
    }).map((one) => one.outerHTML.slice(0, 100))""")
    assert own == []
