"""Clients of a random run: producers, consumers, members of groups, transactions, as coroutines."""
