"""One HTML page that needs no other file: it contains style, charts and tables."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Self

from broker_sim.page.files import report_style

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Row

STYLE = f"""{report_style()}
main, header {{ max-width: 1120px; margin: 0 auto; padding: 0 20px; }}
header {{ padding-top: 32px; }}
h1 {{ font-size: 26px; margin: 0 0 8px; }}
h2 {{ font-size: 19px; margin: 0 0 4px; }}
dl {{ display: flex; flex-wrap: wrap; gap: 8px 40px; margin: 12px 0 0; }}
dt {{ color: var(--soft); font-size: 13px; }}
dd {{ font-size: 20px; font-variant-numeric: tabular-nums; }}
nav a {{ margin-right: 16px; color: var(--accent); }}
nav {{ margin-top: 16px; }}
section {{ background: var(--panel); border: 1px solid var(--line); border-radius: 12px; margin: 20px 0;
  padding: 20px 24px; box-shadow: var(--shadow); }}
section p {{ margin: 0 0 12px; color: var(--soft); max-width: 75ch; }}
figure {{ margin: 0; overflow-x: auto; background: #fff; border-radius: 8px; }}
figure svg {{ width: 100%; height: auto; }}
.table {{ overflow-x: auto; margin-top: 12px; }}
table {{ width: auto; font-size: 13px; font-variant-numeric: tabular-nums; }}
th, td {{ white-space: nowrap; }}
th {{ white-space: normal; vertical-align: bottom; }}
td {{ white-space: pre; vertical-align: top; }}
"""


@dataclass(frozen=True, slots=True)
class Table:
    """A table's header and cells."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]

    @classmethod
    def of_rows(cls, columns: Sequence[str], rows: Sequence[Row]) -> Self:
        """Return a table with the named columns of Spark's rows."""
        return cls(columns, [[row[name] for name in columns] for row in rows])


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the page; `text` is HTML, `picture` an SVG document."""

    title: str
    text: str
    picture: str | None = None
    table: Table | None = None

    @property
    def is_filled(self) -> bool:
        """Whether it has a chart or a table."""
        return self.picture is not None or self.table is not None


def render(title: str, facts: Mapping[str, str], sections: Sequence[Section]) -> str:
    """Return the page."""
    facts_html = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts.items())
    links = "".join(f'<a href="#s{number}">{escape(section.title)}</a>' for number, section in enumerate(sections))
    body = "".join(_section(f"s{number}", section) for number, section in enumerate(sections))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n"
        f"<body><header><h1>{escape(title)}</h1><dl>{facts_html}</dl><nav>{links}</nav></header>"
        f"\n<main>{body}</main></body></html>\n"
    )


def _section(name: str, section: Section) -> str:
    figure = table = ""
    if section.picture is not None:
        figure = f'<figure role="img" aria-label="{escape(section.title)}">{section.picture}</figure>'
    if section.table is not None and section.table.rows:
        table = f'<div class="table">{_table(section.table)}</div>'
    return f'<section id="{name}"><h2>{escape(section.title)}</h2><p>{section.text}</p>{figure}{table}</section>\n'


def _table(table: Table) -> str:
    numeric = [any(isinstance(row[i], int | float) for row in table.rows) for i in range(len(table.columns))]
    kinds = [' class="number"' if is_number else "" for is_number in numeric]
    head = "".join(f"<th{kind}>{escape(_heading(name))}</th>" for kind, name in zip(kinds, table.columns, strict=True))
    body = "".join(
        "<tr>"
        + "".join(f"<td{kind}>{escape(_text(value))}</td>" for kind, value in zip(kinds, row, strict=True))
        + "</tr>"
        for row in table.rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _heading(name: str) -> str:
    return name.replace("_", " ").replace("p999", "p99.9")


def _text(value: Any) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:,.3f}".rstrip("0").rstrip(".")
        case int():
            return f"{value:,}"
        case list():
            return ", ".join(map(str, value))
    return str(value)
