"""Scripts for those who develop broker-sim; not part of the package."""
