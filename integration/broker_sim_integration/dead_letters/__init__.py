"""Dead letters of share groups (KIP-1191): the same steps on Kafka 4.4.0, recorded, and on the simulator."""
