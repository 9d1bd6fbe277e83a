"""Groups of Kafka Streams applications (KIP-1071), whose tasks are assigned by the coordinator."""
