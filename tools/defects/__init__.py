"""Deliberate defects, and a command that measures which tests catch them.

`rooms/` holds the defects, one file per room of the code. `python -m tools.defects` puts each one into a
copy of the project and runs the tests there, the nearest first, until one fails. It shows that test, and
exits with 1 if fewer are caught than required:

    python -m tools.defects --near purgatory                        only the room's tests
    python -m tools.defects --tier test --at-least 100 --jobs 2     all tests of `make test`
    python -m tools.defects --soak --report out/defects.json        all tests, continuing an earlier run
"""
