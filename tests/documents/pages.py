"""The pages of the documentation and their code blocks, and how to write one so that it is tested.

Every fenced block of README.md and docs/ is run, but what is said otherwise below.
Words behind the language say how; readers do not see them.

    ```console              Commands behind `$ `, and under each the output that it must have. All
                            blocks of a page are typed in order, in one directory, into one shell.
      terminal=NAME         Another shell of the page, as a user opens another terminal.
      stays                 The last command goes on; the next block goes to another terminal. What
                            it prints later, and whether it succeeds, counts at the next block of
                            its own terminal; at the end of the page it is interrupted by ctrl-C.
      repeat                The command is typed again until its output is as shown.
      fails                 The last command ends with an error.
      by=TEST               Run by that test only, for it takes long or changes this machine.
    ```python               Run, each block by itself; one with tests is given to pytest, and one
                            with `pytest_plugins` is their conftest.py.
      signature             Not run: how something is called.
    ```python file=NAME     Not run by itself: a file that the commands of the page find. So is
    ```json file=NAME       this.

    ```java from=FILE       A file of the repository as it stands; so are go, js, rust and yaml. Its own tests run it.
    ```yaml                 Not run.
    ```text                 Not run.
      output                What the Python block before it prints.

What a Python block prints may also stand in comments behind `print(...)`, in order: `print(x)  # 3`.

Output is compared line by line without empty lines, runs of blanks and of `─` count as one. `...` is
any text in a line, and as a line of its own any lines. What else may differ is said before the block,
as a regular expression: `<!-- varies: [0-9]+ ms -->` lets each time of the output be another one.
Pages with `broker-sim-pipeline` are typed in one directory, that of the Spark process which they share.
The ports 9092 to 9094 and 8090 are replaced by free ones. `make` is asked with `-n` what it would do.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]

FENCE = "```"
VARIES = re.compile(r"<!-- varies: (.*) -->")
FLAGS = {
    "console": {"terminal", "stays", "repeat", "fails", "by"},
    "python": {"signature", "file"},
    "json": {"file"},
    "text": {"output"},
    **{language: {"from"} for language in ("java", "go", "js", "rust", "yaml")},
}
CLIENTS = re.compile(r"\bkcat\b|import (?:confluent_|aio)?kafka|from (?:confluent_|aio)?kafka")


class Block(NamedTuple):
    """A fenced block: its first line's number, language, words, text and what may vary in it."""

    page: str
    line: int
    language: str
    words: dict[str, str]
    text: str
    varies: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def needs_spark(self) -> bool:
        """Whether it runs a job of the pipeline."""
        return self.language == "console" and "broker-sim-pipeline" in self.text

    @property
    def needs_client(self) -> bool:
        """Whether it uses a client that is no part of the product."""
        return CLIENTS.search(self.text) is not None


class Command(NamedTuple):
    """A command of a console block, and the lines under it."""

    text: str
    output: str


class Document(NamedTuple):
    """A page without its blocks, and the blocks."""

    prose: str
    blocks: list[Block]


def name_of(page: Path) -> str:
    """Return the name of a page, its folder in docs/ included."""
    return page.relative_to(DOCS).as_posix() if page.is_relative_to(DOCS) else page.name


def read_page(path: Path) -> Document:
    """Return what a page has. AssertionError for a fence that is not closed."""
    return parse(name_of(path), path.read_text("utf-8"))


def parse(name: str, text: str) -> Document:
    """Return what a page of that text has."""
    prose: list[str] = []
    blocks: list[Block] = []
    lines = enumerate(text.splitlines(), 1)
    varies = ""
    for number, line in lines:
        if found := VARIES.fullmatch(line):
            varies = found[1]
        elif line.startswith(FENCE):
            language, *words = line.removeprefix(FENCE).split() or [""]
            inside = []
            for _, inner in lines:
                if inner == FENCE:
                    break
                inside.append(f"{inner}\n")
            else:
                raise AssertionError(f"{name}:{number}: the block has no end")
            options = {key: value for key, _, value in (word.partition("=") for word in words)}
            blocks.append(Block(name, number, language, options, "".join(inside), varies))
            varies = ""
        else:
            prose.append(line)
    return Document("\n".join(prose), blocks)


def commands(block: Block) -> list[Command]:
    r"""Return the commands of a console block; one goes on after a `\` at the end of a line."""
    found: list[list[str]] = []
    continued = False
    for line in block.text.splitlines():
        if continued:
            found[-1][0] += f"\n{line}"
        elif line.startswith("$ "):
            found.append([line.removeprefix("$ ")])
        else:
            assert found, f"{block.place}: output before the first command"
            found[-1].append(line)
        continued = len(found[-1]) == 1 and line.endswith("\\")
    return [Command(command, "\n".join(output)) for command, *output in found]
