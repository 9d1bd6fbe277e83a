"""Record a real Kafka's responses (needs Docker): `python -m broker_sim_integration.logins` writes `recorded.jsonl`."""

from __future__ import annotations

from broker_sim_integration.logins.real import play_on_real
from broker_sim_integration.logins.table import RECORDING
from broker_sim_integration.recorded_cases import write_cases


def main() -> None:
    """Play the table and write the recording."""
    write_cases(RECORDING, play_on_real())


if __name__ == "__main__":
    main()
