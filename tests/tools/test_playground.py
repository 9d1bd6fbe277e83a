"""The site that runs in a browser tab: what it has inside, and that a seed takes the same course there."""

import gzip
import importlib
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import threading
import zlib
from base64 import urlsafe_b64decode
from pathlib import Path

import pytest

from tools.browsers import REMEDY, find_browser
from tools.playground import __main__ as playground

BROWSER = find_browser()
DRIVER = Path(__file__).with_name("playground_in_chromium.mjs")
NATIVE = """
import json, sys
from broker_sim.chaos.search import NamedTest
digests = {}
for name in sys.argv[2:]:
    test = NamedTest.of(name)
    for seed in range(int(sys.argv[1])):
        outcome = test.run(test.draw(seed))
        digests[f"{name} {seed}"] = [outcome.digest, outcome.invariant]
print(json.dumps(digests))
"""
LINK = re.compile(r'href="x#chaos=([\w-]+)"')
MOST_BYTES = 10_000_000
FAILS_ON_ITS_PAGE = "test_no_order_is_lost"
NAMES = [f"{name}:test_{kind}" for name in playground.examples() if name != "shop" for kind in ("wrong", "mended")]


@pytest.fixture
def modules(monkeypatch):
    """Import modules that the page has, without the stand-ins for packages."""

    def load(name):
        monkeypatch.syspath_prepend(str(playground.HERE / "python"))
        return importlib.import_module(name)

    yield load
    for name in [name for name in sys.modules if name.startswith("playground")]:
        del sys.modules[name]


@pytest.fixture
def site():
    """The built site; without it the test is skipped."""
    if shutil.which("node") is None:
        pytest.skip("Node is missing: install Node 20 with npm, then make playground")
    if not playground.is_built():
        pytest.skip("the site is not built, or has other packages: make playground")
    return playground.SITE


def test_packages_have_their_data_and_nothing_that_a_browser_cannot_run():
    files = playground.all_files()
    assert {"broker_sim/__init__.pyi", "broker_sim/protocol/schemas.jsonl", "aiokafka/client.py"} <= {*files}
    assert not [name for name in files if name.endswith((".so", ".pyc"))]
    assert not [name for name in files if name.endswith(".pyi") and name != "broker_sim/__init__.pyi"]
    assert {"pytest.py", "crc32c.py", "playground.py"} <= {*files}


def test_site_is_made_again_when_one_of_its_scripts_changes(tmp_path, monkeypatch):
    monkeypatch.setattr(playground, "SITE", tmp_path)
    (tmp_path / "sizes.json").write_text(json.dumps({"sources": playground.digest_now()}))
    assert playground.is_built()
    changed = shutil.copytree(playground.HERE, tmp_path / "changed")
    (changed / "site/main.js").write_text("// another one")
    monkeypatch.setattr(playground, "HERE", changed)
    assert not playground.is_built()


def test_page_asks_no_other_host():
    texts = [path.read_text("utf-8") for path in sorted((playground.HERE / "site").iterdir())]
    assert not [text for text in texts if "http://" in text or "https://" in text or 'src="//' in text]


def _applied(marks):
    @marks.virtual_time
    @marks.chaos("slow", seeds=3)
    def test(chaos):
        pass

    return test.pytestmark


def test_marks_are_those_of_pytest():
    def marked(namespace):
        exec((playground.HERE / "python/pytest.py").read_text("utf-8"), namespace)
        return _applied(namespace["mark"])

    stand_ins = marked({"__name__": "stand_in"})
    marks = _applied(pytest.mark)
    assert [(each.name, each.args, each.kwargs) for each in stand_ins] == [
        (each.name, each.args, each.kwargs) for each in marks
    ]


def test_wheel_tells_which_tasks_fall_run_and_are_cancelled(modules):
    wheel = modules("playground_wheel").Wheel(tick_ms=1, size=20)
    for delay_ms in (8, 446, 450):
        wheel.add(delay_ms)
    wheel.cancel("#3")
    wheel.advance(1_000)
    texts = [(line["at_ms"], line["text"]) for line in wheel.log[3:]]
    assert texts[0] == (0, "#3 is cancelled: unlinked from its bucket in one step")
    assert texts[1] == (8, "#1 runs")
    assert [text for _, text in texts[2:4]] == [
        "#2 falls from level 3 to level 2, bucket 2",
        "#2 falls from level 2 to level 1, bucket 6",
    ]
    assert texts[-1] == (446, "#2 runs")
    assert (wheel.counts["ran"], wheel.counts["cancelled"], wheel.counts["fell"]) == (2, 1, 2)


def test_heap_beside_the_wheel_has_the_tasks_that_are_not_due(modules):
    wheel = modules("playground_wheel").Wheel(tick_ms=1, size=20)
    for delay_ms in (40, 30, 30, 30, 7, 30, 500):
        wheel.add(delay_ms)
    wheel.cancel("#7")
    wheel.advance(35)
    assert sorted(wheel.tasks) == ["#1"]
    assert sorted(entry.due_ms for entry in wheel.heap) == [40, 500]


def test_wheel_state_is_a_picture_with_the_queue_of_buckets(modules):
    wheel = modules("playground_wheel").Wheel(tick_ms=1, size=20)
    wheel.add(8)
    wheel.add(46)
    state = json.loads(wheel.state())
    purgatory = state["set"]["purgatory/0/tasks"]
    assert [one["due_ms"] for one in purgatory["parked"]] == [8, 46]
    assert [(one["opens_ms"], one["level"], one["tasks"]) for one in state["queue"]] == [
        (8, 1, ["#1"]),
        (40, 2, ["#2"]),
    ]


def test_cluster_has_clients_verbs_and_pictures(modules):
    do = modules("playground_cluster").do
    first = json.loads(do("new", "{}"))
    assert {"broker/1", "broker/2", "broker/3"} <= {*first["set"]}
    assert "pause" in {verb["name"] for verb in first["verbs"]}
    do("consume", json.dumps({"topic": "orders", "group": "billing"}))
    do("produce", json.dumps({"topic": "orders", "values": ["three apples"]}))
    said = json.loads(do("advance", json.dumps({"ms": 10_000})))["said"]
    assert any("acknowledged" in line["text"] for line in said)
    assert any("has 'three apples'" in line["text"] for line in said)
    refused = json.loads(do("call", json.dumps({"name": "pause", "values": {"broker_id": 9}})))
    assert "9" in refused["error"]
    paused = json.loads(do("call", json.dumps({"name": "pause", "values": {"broker_id": 2}})))
    assert paused["error"] is None
    assert paused["set"]["broker/2"]["state"] == "paused"
    assert json.loads(do("step", "{}"))["at_ms"] >= paused["at_ms"]
    modules("playground_cluster")._playground.close()


@pytest.mark.parametrize(
    ("answer", "line"),
    [("accept", "accepts 1 record"), ("release", "delivery 2"), ("reject", "rejects 1 record"), ("", "delivery 2")],
)
def test_member_of_a_share_group_answers_for_what_it_gets(modules, answer, line):
    cluster = modules("playground_cluster")
    cluster.do("new", "{}")
    cluster.do("share", json.dumps({"topic": "orders", "group": "packing", "answer": answer}))
    cluster.do("advance", json.dumps({"ms": 10_000}))
    cluster.do("produce", json.dumps({"topic": "orders", "values": ["three apples"]}))
    state = json.loads(cluster.do("advance", json.dumps({"ms": 35_000})))
    texts = [each["text"] for each in state["said"] if each["who"] == "share-1"]
    assert "acquires 'three apples' from orders-1, offset 0, delivery 1" in texts
    assert any(text.endswith(line) for text in texts), texts
    assert state["set"]["group/packing"]["type"] == "share"
    cluster._playground.close()


def test_markers_of_transactions_are_no_records_of_a_share_group(modules):
    cluster = modules("playground_cluster")
    cluster.do("new", "{}")
    cluster.do("produce", json.dumps({"topic": "orders", "values": ["three apples"], "transaction": True}))
    cluster.do("advance", json.dumps({"ms": 10_000}))
    cluster.do("share", json.dumps({"topic": "orders", "group": "packing"}))
    state = json.loads(cluster.do("advance", json.dumps({"ms": 10_000})))
    texts = [each["text"] for each in state["said"] if each["who"] == "share-2"]
    assert [text for text in texts if text.startswith(("acquires", "accepts"))] == [
        "acquires 'three apples' from orders-1, offset 0, delivery 1",
        "accepts 1 record",
    ]
    assert state["set"]["group/packing"]["lag"] == 0
    cluster._playground.close()


def test_partitions_are_searched_in_the_whole_cluster(modules):
    cluster = modules("playground_cluster")
    cluster.do("new", json.dumps({"topics": ["many:400:1"]}))
    state = json.loads(cluster.do("look", json.dumps({"search": "many-399", "level": 0, "bucket": 0})))
    assert "partition/many/399" in state["set"]
    cluster._playground.close()


def test_producer_without_acknowledgements_says_so(modules):
    cluster = modules("playground_cluster")
    cluster.do("new", "{}")
    cluster.do("produce", json.dumps({"topic": "orders", "values": ["three apples"], "acks": "0"}))
    state = json.loads(cluster.do("advance", json.dumps({"ms": 10_000})))
    assert state["said"][-1]["text"] == "'three apples' is sent: with acks=0 no broker answers"
    assert len(cluster._playground.cluster.records("orders")) == 1
    cluster._playground.close()


def test_cluster_injects_the_fault_of_a_form(modules):
    cluster = modules("playground_cluster")
    verbs = {verb["name"]: verb for verb in json.loads(cluster.do("new", "{}"))["verbs"]}
    assert {"api", "error", "count"} <= {each["name"] for each in verbs["inject"]["parameters"]}
    inject = {"name": "inject", "values": {"api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER"}}
    state = json.loads(cluster.do("call", json.dumps(inject)))
    assert (state["error"], state["set"]["fault/1"]["error"]) == (None, "NOT_LEADER_OR_FOLLOWER")
    cluster._playground.close()


def _digests_natively(count):
    done = subprocess.run(
        [sys.executable, "-c", NATIVE, str(count), *NAMES], cwd=playground.ROOT / "examples/chaos",
        env={**os.environ, "PYTHONHASHSEED": "7"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


def _digests_in_webassembly(site, count):
    command = ["node", str(playground.HERE / "seeds.mjs"), str(site), str(count)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])


@pytest.mark.clients
def test_seed_takes_the_same_course_on_32_and_64_bits(site):
    assert _digests_in_webassembly(site, 1) == _digests_natively(1)


@pytest.mark.clients
def test_download_is_below_ten_megabytes_compressed(site):
    """Everything that a search takes; lessons.zip comes with the first lesson."""
    files = [path for path in site.rglob("*") if path.is_file() and path.name != "lessons.zip"]
    assert sum(len(gzip.compress(path.read_bytes())) for path in files) < MOST_BYTES


def _linked_programs():
    """Return what the links of all pages carry: files, module and test."""
    conf = runpy.run_path(str(playground.ROOT / "docs/conf.py"))
    texts = [page.read_text("utf-8") for page in sorted((playground.ROOT / "docs").rglob("*.md"))]
    packed = [text for page in texts for text in LINK.findall(conf["with_run_links"](page, "x"))]
    return [
        json.loads(zlib.decompress(urlsafe_b64decode(text + "=" * (-len(text) % 4)), wbits=-zlib.MAX_WBITS))
        for text in packed
    ]


@pytest.mark.clients
def test_programs_of_the_pages_run_in_webassembly(site, tmp_path):
    programs = _linked_programs()
    assert len(programs) >= 7
    (tmp_path / "programs.json").write_text(json.dumps(programs), "utf-8")
    command = ["node", str(playground.HERE / "blocks.mjs"), str(site), str(tmp_path / "programs.json")]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [failure["test"] for failure in json.loads(lines[-1])] == [FAILS_ON_ITS_PAGE]


@pytest.mark.soak(part="playground")
def test_360_seeds_take_the_same_course_on_32_and_64_bits(site):
    here, there = _digests_natively(30), _digests_in_webassembly(site, 30)
    assert len(here) == 30 * len(NAMES)
    assert there == here


@pytest.mark.soak(part="playground")
def test_page_works_in_chromium(site, tmp_path):
    if BROWSER is None:
        pytest.skip(REMEDY)
    with playground.make_server() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            address = f"http://127.0.0.1:{server.server_port}/"
            command = ["node", str(DRIVER), address, BROWSER, str(playground.BUILD), str(tmp_path)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        finally:
            server.shutdown()
            thread.join()
    assert done.returncode == 0, done.stdout + done.stderr
