"""A real Kafka of three KRaft nodes, in containers or as local processes, for the comparison."""
