"""Tables that show what fits into a terminal."""

import io

import pytest
from rich.console import Console
from rich.text import Text

from broker_sim.cli.columns import Column, age_text, fitted_table

NAME = "billing-service-of-the-shop-in-berlin-7"
COLUMNS = (
    Column("name", lambda row: row[0], 0, is_long=True),
    Column("state", lambda row: row[1], 1),
    Column("extra", lambda row: row[2], 3),
    Column("age", lambda row: row[3], 2, is_right=True),
)
ROWS = [(NAME, "Ongoing", "twelve chars", "3 ms"), ("b", "Empty", "", "12345 ms")]


def lines(table, width):
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(table)
    return [line.rstrip() for line in console.export_text().splitlines()]


def head(width):
    return lines(fitted_table("t", COLUMNS, ROWS, width), width)[2].split()


@pytest.mark.parametrize(
    ("width", "titles"),
    [
        (48, ["name", "state", "extra", "age"]),
        (47, ["name", "state", "age"]),
        (34, ["name", "state", "age"]),
        (33, ["name", "state"]),
        (24, ["name", "state"]),
        (23, ["name"]),
        (15, ["name"]),
    ],
)
def test_columns_are_left_out_by_rank_when_they_do_not_fit(width, titles):
    # name 12 (shortened), state 7, extra 12, age 8, two beside each and one beside all
    shown = head(width)
    assert shown == titles
    assert max(map(len, lines(fitted_table("t", COLUMNS, ROWS, width), width))) <= width


def test_no_cell_is_cut_where_the_columns_just_fit():
    assert "billi…rlin-7" in " ".join(lines(fitted_table("t", COLUMNS, ROWS, 48), 48))
    exact = lines(fitted_table("t", COLUMNS, ROWS, 75), 75)
    assert NAME in exact[4]
    assert "twelve chars" in exact[4]
    assert "12345 ms" in exact[5]


def test_without_a_width_all_columns_are_whole():
    shown = lines(fitted_table("t", COLUMNS, ROWS, None), 200)
    assert shown[4].split() == [NAME, "Ongoing", "twelve", "chars", "3", "ms"]


def test_names_of_clients_are_no_markup():
    row = ("[red]shop[/]", Text("Empty", "yellow"), "[/]", "")
    for folds in (False, True):
        table = fitted_table("t", COLUMNS, [row], 80, folds=folds)
        assert lines(table, 80)[4].split() == ["[red]shop[/]", "Empty", "[/]"]


def test_folded_names_are_whole_where_others_are_shortened():
    shown = lines(fitted_table("t", COLUMNS, ROWS, 34, folds=True), 34)
    assert shown[2].split() == ["name", "state", "age"]
    rows = [line[1:13].strip() for line in shown[4:8]]
    assert "".join(rows) == NAME
    assert rows[0] == NAME[:12]


def test_list_is_shortened_at_its_end():
    row = ("orders-0, orders-1", "Ongoing", "", "")
    shown = lines(fitted_table("t", COLUMNS[:2], [row], 24), 24)
    assert shown[4].split() == ["orders-0,", "o…", "Ongoing"]


@pytest.mark.parametrize(
    ("age_ms", "text"),
    [
        (0, "0 ms"),
        (9_999, "9999 ms"),
        (10_000, "10 s"),
        (599_999, "599 s"),
        (600_000, "10 min"),
        (35_999_999, "599 min"),
        (36_000_000, "10 h"),
    ],
)
def test_ages_are_short(age_ms, text):
    assert age_text(age_ms) == text
