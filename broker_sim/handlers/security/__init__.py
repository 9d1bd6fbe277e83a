"""APIs of users and their credentials."""
