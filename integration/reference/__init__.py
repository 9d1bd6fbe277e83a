"""A real Kafka of three KRaft nodes to compare with, and what it needs: jars, images, a recording."""
