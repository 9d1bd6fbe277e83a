"""The output of a fuzzer run: a difference as a scenario, the findings as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from pprint import pformat
from typing import TYPE_CHECKING, Any, Final

from broker_sim_integration.fuzz.sequence import Sequence

if TYPE_CHECKING:
    from pathlib import Path

    from broker_sim_integration.fuzz.fuzzer import Finding

_TOP: Final = (__package__ or "").rpartition(".")[0]
WIDTH: Final = 96
SHOWN_DIFFERENCES: Final = 5


def as_scenario(finding: Finding) -> str:
    """Return the smallest differing sequence as scenario code."""
    sequence = finding.shrunk or finding.sequence
    differences = finding.shrunk_differences or finding.differences
    claims = "\n".join(f"    {one}".rstrip() for one in differences[:SHOWN_DIFFERENCES])
    topics = "".join(f"        {_call(topic, 8)},\n" for topic in sequence.topics)
    actions = "".join(f"        {_call(action, 8)},\n" for action in sequence.actions)
    # The body may quote any content of a request.
    claims = claims.replace("\\", "\\\\").replace('"""', "'''")
    return (
        f"from {__package__}.as_observations import observe_sequence\n"
        f"from {__package__}.sequence import Fault, Pause, Request, Sequence, TopicPlan\n"
        f"from {_TOP}.scenarios.scenario import scenario\n"
        "\n\n"
        "@scenario()\n"
        f"def fuzz_{sequence.name}(cluster):\n"
        f'    """Fuzzing found these, the number is that of the action:\n\n{claims}\n    """\n'
        f"    yield from observe_sequence(cluster, SEQUENCE_{sequence.name.upper()})\n"
        "\n\n"
        f"SEQUENCE_{sequence.name.upper()} = Sequence(\n"
        f"    {sequence.area!r},\n"
        f"    {sequence.seed},\n"
        f"    (\n{topics}    ),\n"
        f"    (\n{actions}    ),\n"
        ")\n"
    )


def _call(value: Any, indent: int) -> str:
    """Return the constructor call of a dataclass, one field per line."""
    pad = " " * (indent + 4)
    fields = "".join(f"{pad}{name}={_literal(field, indent + 4)},\n" for name, field in asdict(value).items())
    return f"{type(value).__name__}(\n{fields}{' ' * indent})"


def _literal(value: Any, indent: int) -> str:
    text = pformat(value, width=WIDTH - indent, sort_dicts=False)
    return text.replace("\n", f"\n{' ' * indent}")


def write_finding(finding: Finding, directory: Path) -> Path:
    """Write a finding into `NAME.json`, and as a scenario into `NAME.py`."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{finding.sequence.name}.json"
    document = {
        "sequence": finding.sequence.to_json(),
        "differences": [asdict(one) for one in finding.differences],
        "by_chance": finding.by_chance,
        "once_different": [asdict(one) for one in finding.once_different],
        "trouble": finding.trouble,
        "shrunk": None if finding.shrunk is None else finding.shrunk.to_json(),
        "shrunk_differences": [asdict(one) for one in finding.shrunk_differences],
    }
    path.write_text(json.dumps(document, indent=1, default=repr) + "\n", encoding="utf-8")
    if finding.differences:
        path.with_suffix(".py").write_text(as_scenario(finding), encoding="utf-8")
    return path


def read_sequence(path: Path) -> Sequence:
    """Return the sequence in a file written by `write_finding`, if possible the shrunk one.

    Raises ValueError with one line for any other file.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return Sequence.from_json(document["shrunk"] or document["sequence"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not a sequence of a fuzz run: {error}") from error
