"""The comparison of the simulator with a real Kafka, and the pipeline that analyses traces."""
