"""What users' test suites need: the pytest plugin for async tests in virtual time."""
