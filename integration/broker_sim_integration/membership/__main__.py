"""Record the outcomes of Kafka 4.4.0: `python -m broker_sim_integration.membership` writes `recorded.jsonl`."""

from __future__ import annotations

from broker_sim_integration.membership.real import play_on_real
from broker_sim_integration.membership.table import RECORDING
from broker_sim_integration.recorded_cases import write_cases


def main() -> None:
    """Play the table and write the recording."""
    write_cases(RECORDING, play_on_real())


if __name__ == "__main__":
    main()
