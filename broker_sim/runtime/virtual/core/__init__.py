"""The core of a virtual loop: time, callbacks, processes. The loop's other parts depend on it, never the reverse."""
