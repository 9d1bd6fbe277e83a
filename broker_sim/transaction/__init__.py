"""The transaction coordinator: transactional ids and their transactions, kept in `__transaction_state`."""
