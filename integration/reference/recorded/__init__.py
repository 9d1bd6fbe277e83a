"""What a real Kafka answered once: shipped, so that a comparison needs neither Docker nor Java."""
