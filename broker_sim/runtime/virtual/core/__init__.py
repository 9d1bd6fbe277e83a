"""The core of a virtual loop: time, callbacks, processes. Its other parts know the core, and the core none of them."""
