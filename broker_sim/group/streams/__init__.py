"""Groups of Kafka Streams applications (KIP-1071): their tasks are assigned by the coordinator."""
