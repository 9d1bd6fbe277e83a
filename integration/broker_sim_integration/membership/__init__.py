"""Brokers that join and leave a running cluster: steps on Kafka 4.4.0, recorded, and on the simulator."""
