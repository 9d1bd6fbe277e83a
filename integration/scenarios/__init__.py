"""The catalogue of scenarios: what a Kafka cluster does with requests that have to wait."""
