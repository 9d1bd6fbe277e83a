"""When waiting requests are answered, each case often enough to be judged by its distribution."""
