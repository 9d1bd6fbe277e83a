"""What scenarios of share groups have in common: members, their group, and what they are answered."""
