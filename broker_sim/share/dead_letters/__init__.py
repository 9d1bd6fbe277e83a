"""The dead letters of share groups (KIP-1191): what is written of records that a group cannot process."""
