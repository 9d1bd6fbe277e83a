"""A defect as data: one file, the exact text before and after, and what a user would see.

A file in `rooms/` has one table per defect, whose name is the defect's id:

    [fetch_waits_one_ms_too_long]
    file = "broker_sim/replica/delayed_fetch.py"
    shows = "A fetch without records is answered a millisecond late."
    before = "delay_ms"
    after = "delay_ms + 1"

`near` may name the files of tests that have the claim, if their names do not tell.
"""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT: Final = Path(__file__).parents[2]
PACKAGE_FOLDERS: Final = ("integration", "purgatory")
"""Folders of the repository that hold a package, each by its installed name."""
ROOMS: Final = Path(__file__).with_name("rooms")


class DefectError(Exception):
    """The list is wrong: an id twice, or a text that is not in its file exactly once."""


@dataclass(frozen=True, slots=True)
class Defect:
    """A small slip in one file of the product."""

    id: str
    file: str
    shows: str
    before: str
    after: str
    near: tuple[str, ...] = ()
    """Files of tests that are tried first, where the claim is not in those named after the file."""

    @property
    def room(self) -> str:
        """The folder below a package's top that it is in; the package where it has no folders."""
        return room_of(self.file)

    @property
    def tests(self) -> Path:
        """The folder of the room's tests, relative to the root."""
        return Path("tests") / self.room

    def module_tests(self, tree: Path) -> list[str]:
        """Return the tests in `tree` that are named here, or after the file, in whole or in part."""
        path = Path(self.file)
        module = path.stem.lstrip("_")
        named_after = [
            str(found.relative_to(tree))
            for found in sorted((tree / "tests" / _mirrored(self.file)).glob("test_*.py"))
            if _is_named_after(found.stem.removeprefix("test_"), module)
        ]
        return list(dict.fromkeys([*self.near, *named_after]))

    @property
    def digest(self) -> str:
        """Digest that identifies the change; a result counts as long as it stays the same."""
        text = f"{self.file}\0{self.before}\0{self.after}"
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def patched(self, text: str) -> str:
        """Return the file's text with the defect; DefectError unless `before` is there once."""
        if (found := text.count(self.before)) != 1:
            raise DefectError(f"{self.id}: `before` is {found} times in {self.file}, not once")
        if self.before == self.after:
            raise DefectError(f"{self.id}: it changes nothing")
        return text.replace(self.before, self.after)

    def put_into(self, tree: Path) -> None:
        """Write the defect into the copy of the project at `tree`."""
        path = tree / self.file
        path.write_text(self.patched(path.read_text()))


def _mirrored(file: str) -> Path:
    """Return the folder below `tests` that mirrors the file's: those of packages in a folder leave its name out."""
    folder = Path(file).parent
    top, *rest = folder.parts
    return Path(top, *rest[1:]) if top in PACKAGE_FOLDERS else folder


def _is_named_after(tested: str, module: str) -> bool:
    return f"{tested}_".startswith(f"{module}_") or f"{module}_".startswith(f"{tested}_")


def room_of(file: str) -> str:
    """Return the room of a file of the product: broker_sim/log for broker_sim/log/cleaner/x.py."""
    return "/".join(_mirrored(file).parts[:2])


def read_defects(files: Iterable[Path] | None = None) -> list[Defect]:
    """Return the defects of these files; by default all, ordered by room."""
    defects: dict[str, Defect] = {}
    for path in sorted(ROOMS.glob("*.toml")) if files is None else files:
        for defect_id, fields in tomllib.loads(path.read_text()).items():
            if defect_id in defects:
                raise DefectError(f"{defect_id}: two defects have this id")
            near = tuple(fields.pop("near", ()))
            defects[defect_id] = Defect(id=defect_id, **fields, near=near)
    return list(defects.values())
