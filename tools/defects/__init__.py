"""Defects put in on purpose, and a command that measures which tests catch them.

`rooms/` holds the defects, one file per room of the code. `python -m tools.defects` puts each one into a
copy of the project and runs the tests there, the nearest first, until one fails. It shows which test that
is, and ends with 1 if fewer are caught than wanted:

    python -m tools.defects --near purgatory                        the tests of the room alone
    python -m tools.defects --tier test --at-least 100 --jobs 2     all that `make test` has
    python -m tools.defects --soak --report out/defects.json        everything, and goes on where it ended
"""
