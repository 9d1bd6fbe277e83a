"""Dead letters of share groups (KIP-1191): copies of records that a group cannot process."""
