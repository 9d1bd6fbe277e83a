"""What coordinators share: a runtime that carries out what they decide, partitions, and records in them."""
