"""APIs for idempotent and transactional producers."""
