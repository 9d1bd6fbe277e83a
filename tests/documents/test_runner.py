"""The runner of the pages sees each way in which a page can be wrong."""

import re
import runpy
import shlex
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PAGES = runpy.run_path(str(HERE / "pages.py"))


def blocks(text):
    return PAGES["parse"]("page.md", text).blocks


def console(text, words="", before=""):
    return f"{before}\n```console {words}\n{text}\n```\n"


@pytest.mark.parametrize(
    "text",
    [
        console("$ echo one two\none two"),
        console("$ echo 'one    two'; echo; echo ' ─── '\none two\n─"),
        console("$ printf 'a\\nb\\nc\\nd\\n'\na\n...\nd"),
        console("$ echo 17 seconds and 3\n17 ... 3"),
        console("$ echo waited 23 ms\nwaited 4 ms", before="<!-- varies: [0-9]+ ms -->"),
        console("$ export KEY=value") + console("$ echo $KEY\nvalue"),
        console("$ echo one \\\n    two\none two"),
        console("$ false", "fails"),
        console("$ cat", "terminal=1"),
        console("$ echo x >> file; wc -l < file\n3", "repeat"),
        console("$ make help"),
        "```json file=given.json\n[1]\n```\n" + console("$ cat given.json\n[1]"),
    ],
)
def test_a_page_that_is_right_passes(text, play):
    play(blocks(text))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (console("$ echo one\ntwo"), "shown:\ntwo\nprinted:\none"),
        (console("$ echo one"), "printed:\none"),
        (console("$ true\none"), "shown:\none"),
        (console("$ printf 'a\\nb\\n'\na"), "printed:\na\nb"),
        (console("$ echo waited 23 ms\nwaited 4 s", before="<!-- varies: [0-9]+ ms -->"), "23 ms"),
        (console("$ false"), "page.md:2: exit code 1 of false"),
        (console("$ true", "fails"), "exit code 0 of true"),
        (console("$ export KEY=value", "terminal=1") + console("$ echo $KEY\nvalue"), "value"),
        (console("$ make no-such-target"), "No rule to make target"),
        (console("$ bash -c 'echo ready; exec sleep 60'\nready", "stays"), "exit code 130 of"),
    ],
)
def test_a_page_that_is_wrong_fails(text, told, play):
    with pytest.raises(AssertionError, match=re.escape(told)):
        play(blocks(text))


def test_what_stays_is_looked_at_when_its_terminal_is_used_again(play):
    page = (
        console("$ mkfifo pipe", "terminal=2")
        + console("$ cat pipe; false", "terminal=1 stays")
        + console("$ echo it > pipe", "terminal=2")
        + console("$ true", "terminal=1")
    )
    with pytest.raises(AssertionError, match="exit code 1 of cat pipe"):
        play(blocks(page))


def test_what_stays_ends_with_the_page(play, tmp_path):
    command = "trap 'touch ended; exit 0' INT; echo ready; while :; do read -t 1 _ < pipe; done"
    play(blocks(console(f"$ mkfifo pipe; bash -c {shlex.quote(command)}\nready", "stays")))
    assert (tmp_path / "ended").exists()


def test_ports_of_a_page_are_replaced_by_free_ones(play, tmp_path):
    play(blocks("```json file=ports\n9092 9093 9094 8090 90921 28090\n```\n" + console("$ true")))
    *replaced, longer, other = map(int, (tmp_path / "ports").read_text().split())
    first = replaced[0]
    assert replaced == [first, first + 1, first + 2, first + 3]
    assert 2000 <= first < 9000
    assert (longer, other) == (90921, 28090)


@pytest.mark.parametrize("text", ["```console\n$ true\n", "```console\noutput\n$ true\n```\n"])
def test_a_block_that_is_no_block_is_told(text, play):
    with pytest.raises(AssertionError, match=r"page\.md:1: "):
        play(blocks(text))
