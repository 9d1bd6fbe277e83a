"""Record a real Kafka's responses (needs Docker): `python -m broker_sim_integration.acls` writes `recorded.jsonl`."""

from __future__ import annotations

from broker_sim_integration.acls.play import play
from broker_sim_integration.acls.real import RealBroker
from broker_sim_integration.acls.recorded import RECORDING, to_text


def main() -> None:
    """Play the table and write the recording."""
    with RealBroker() as broker:
        RECORDING.write_text(to_text(play(broker)), "utf-8")


if __name__ == "__main__":
    main()
