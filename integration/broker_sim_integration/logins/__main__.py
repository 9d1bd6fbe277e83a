"""Record a real Kafka's answers (needs Docker): `python -m broker_sim_integration.logins` writes `recorded.jsonl`."""

from __future__ import annotations

from broker_sim_integration.logins.real import play_on_real
from broker_sim_integration.logins.recorded import RECORDING, to_text


def main() -> None:
    """Play the table and write the recording."""
    RECORDING.write_text(to_text(play_on_real()), "utf-8")


if __name__ == "__main__":
    main()
