"""One broker: its lifecycle, the dispatch of requests, and its links to other nodes."""
