"""The power of the random runs: how many seeds they need to find a defect.

`mutants.toml` has defects that random runs have to find; `uncounted.toml` those that they hardly
find, `only.toml` those that one invariant alone sees, and `power_loss.toml` those that need power losses.
`python -m tools.power` puts each into a copy of the product and runs seeds from several starts until
one fails. It shows the median number of seeds, the worst one, the processor time of the median, and the invariants.

    python -m tools.power                                    those of mutants.toml, 20 starts
    python -m tools.power isr_never_shrinks --starts 5       one of them
    python -m tools.power --at-most 25                       ends with 1 where a median is larger
"""
