"""A defect as data: one file, the exact text before and after, and what a user would see.

A file in `rooms/` has one table per defect, whose name is the defect's id:

    [fetch_waits_one_ms_too_long]
    file = "broker_sim/replica/delayed_fetch.py"
    shows = "A fetch without records is answered a millisecond late."
    before = "delay_ms"
    after = "delay_ms + 1"

`near` may name the test files with the claim, if they are not named after the file.
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
"""Folders of the repository with a package of their own, below its installed name."""
ROOMS: Final = Path(__file__).with_name("rooms")


class DefectError(Exception):
    """The list of defects is invalid: a duplicate id, or a text that is not in its file exactly once."""


@dataclass(frozen=True, slots=True)
class Defect:
    """A small slip in one file of the product."""

    id: str
    file: str
    shows: str
    before: str
    after: str
    near: tuple[str, ...] = ()
    """Test files to try first, if the claim is not in those named after the file."""

    @property
    def room(self) -> str:
        """The file's folder below the package, or the package itself if it has no folders."""
        return room_of(self.file)

    @property
    def tests(self) -> Path:
        """The folder of the room's tests, relative to the root."""
        return Path("tests") / self.room

    def module_tests(self, tree: Path) -> list[str]:
        """Return the test files in `tree` that are named in `near`, or after the file or a part of its name."""
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
        """Digest of the change; a stored result is valid as long as the digest stays the same."""
        text = f"{self.file}\0{self.before}\0{self.after}"
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def patched(self, text: str) -> str:
        """Return the file's text with the defect. Raises DefectError unless `before` occurs once."""
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
    """Return the folder below `tests` for the file's folder, without the names in `PACKAGE_FOLDERS`."""
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
