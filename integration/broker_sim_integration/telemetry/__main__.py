"""Record the outcomes of Kafka 4.4.0: `python -m broker_sim_integration.telemetry` writes `recorded.jsonl`."""

from __future__ import annotations

from broker_sim_integration.recorded_cases import write_cases
from broker_sim_integration.telemetry.real import play_on_real
from broker_sim_integration.telemetry.table import RECORDING


def main() -> None:
    """Play the table and write the recording."""
    write_cases(RECORDING, play_on_real())


if __name__ == "__main__":
    main()
