"""Record what Kafka 4.4.0 does: `python -m broker_sim_integration.dead_letters` writes `recorded.jsonl`."""

from __future__ import annotations

from broker_sim_integration.dead_letters.real import play_on_real
from broker_sim_integration.dead_letters.recorded import RECORDING, to_text


def main() -> None:
    """Play the table and write the recording."""
    RECORDING.write_text(to_text(play_on_real()), "utf-8")


if __name__ == "__main__":
    main()
