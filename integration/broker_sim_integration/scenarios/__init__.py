"""The scenarios: what a Kafka cluster does with requests, above all with those that wait."""
