"""What the coordinators of groups and of transactions share: their partitions, and records in them."""
