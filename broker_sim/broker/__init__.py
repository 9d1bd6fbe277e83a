"""One broker: its life, the dispatch of requests, and its links to other nodes."""
