"""A real Kafka of three KRaft nodes to compare with, its jars and image, and a recording of one."""
