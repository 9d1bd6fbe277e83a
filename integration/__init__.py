"""The comparison of the simulator with a real Kafka, and what is made of its observations."""
