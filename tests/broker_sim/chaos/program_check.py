"""What must hold of programs as workers, for `test_command.py`."""


async def prepare(chaos):
    """Run before the workers start."""
    assert chaos.workers == []
    chaos.note("prepare", "is done")


async def check(chaos):
    """Hold in each run: `prepare` has run, and both workers have printed."""
    assert chaos.timeline.moments[0].who == "prepare"

    def both_have_printed():
        who_ticks = {moment.who for moment in chaos.timeline.moments if moment.what == "ticks"}
        return who_ticks == {"worker-1", "worker-2"}

    await chaos.eventually(both_have_printed, "both workers print", within_s=5)


async def nobody_starts_again(chaos):
    """Hold in runs without a fault of the kind `clock`."""
    assert all(worker.starts == 1 for worker in chaos.workers)
