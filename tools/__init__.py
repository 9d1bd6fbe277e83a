"""Scripts for developers of broker-sim; not part of the package."""
