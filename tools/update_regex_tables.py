"""Refresh the verdicts of RE2/J and Java on regular expressions.

Usage: `python -m tools.update_regex_tables`. Writes RE2/J's character classes to
`broker_sim/regex/characters.tsv`, and checks again with Kafka's jars every expression of
`tests/broker_sim/regex/verdicts.jsonl`. A line there holds a dialect (`re2j`, `java`, or `principal` for rules of
ssl.principal.mapping.rules), an expression, and its error or its result for each text; to add an expression, add a
line whose results are null. Needs Java 17 and Maven.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote, unquote_plus

from broker_sim_integration.reference.jars import kafka_jars

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["TABLE", "VERDICTS", "Verdict", "ask"]

TOOLS: Final = Path(__file__).resolve().parent
TABLE: Final = TOOLS.parent / "broker_sim" / "regex" / "characters.tsv"
VERDICTS: Final = TOOLS.parent / "tests" / "broker_sim" / "regex" / "verdicts.jsonl"
TIMEOUT_S: Final = 600
NULL: Final = "!"
"""Marks a group that matched nothing."""


class Verdict(NamedTuple):
    """The verdict of a dialect on an expression."""

    dialect: str
    expression: str
    texts: dict[str, list[str | None] | None]
    """By text: None if the expression does not match the whole text, else its groups, or the principal."""
    error: str | None = None
    """The reason why the expression is refused."""


def run_java(program: str, jars: Path, text: str = "") -> str:
    """Return the output of a program of `tools/java/`."""
    command = ["java", "-Xss16m", "-cp", f"{jars}/*", str(TOOLS / "java" / f"{program}.java")]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    return done.stdout


def ask(verdicts: Iterable[Verdict], jars: Path) -> list[Verdict]:
    """Return the verdicts of Java and RE2/J on the same expressions and texts."""
    asked = list(verdicts)
    lines = ("\t".join([one.dialect, *map(_quoted, (one.expression, *one.texts))]) for one in asked)
    answers = run_java("RegexVerdicts", jars, "\n".join(lines) + "\n").splitlines()
    return [_verdict(one, *answer.split("\t")) for one, answer in zip(asked, answers, strict=True)]


def _quoted(text: str) -> str:
    return quote(text, safe="")


def _verdict(one: Verdict, kind: str, *fields: str) -> Verdict:
    if kind == "error":
        return one._replace(error=unquote_plus(fields[0]))
    return one._replace(error=None, texts=dict(zip(one.texts, map(_groups, fields), strict=True)))


def _groups(field: str) -> list[str | None] | None:
    matches, *groups = field.split(",")
    return [None if one == NULL else unquote_plus(one) for one in groups] if matches == "yes" else None


def _without_union(line: str) -> str:
    """Return a line of the table, for a category of one letter without ranges, which are those of its parts."""
    kind, name, *fields = line.split("\t")
    return "\t".join((kind, name, "", *fields[1:])) if kind == "class" and len(name) == 1 else line


def main() -> None:
    """Write the files."""
    jars = kafka_jars()
    TABLE.write_text("".join(map(_without_union, run_java("RegexFacts", jars).splitlines(keepends=True))), "utf-8")
    verdicts = [Verdict(**json.loads(line)) for line in VERDICTS.read_text("utf-8").splitlines()]
    lines = (json.dumps(one._asdict()) for one in ask(verdicts, jars))
    VERDICTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
