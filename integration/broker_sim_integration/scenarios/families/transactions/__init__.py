"""Transactions: what readers see, who is fenced, what survives a coordinator, offsets, administration."""
