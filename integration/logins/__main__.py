"""Record what a real Kafka answers: `python -m integration.logins` writes `recorded.jsonl`; it needs Docker."""

from __future__ import annotations

from integration.logins.real import play_on_real
from integration.logins.recorded import RECORDING, to_text


def main() -> None:
    """Play the table and write the recording."""
    RECORDING.write_text(to_text(play_on_real()), "utf-8")


if __name__ == "__main__":
    main()
