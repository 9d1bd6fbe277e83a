"""Differential fuzzing: random sequences of raw requests, played on the simulator and on a real Kafka."""
