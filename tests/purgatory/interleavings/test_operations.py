"""Operations: whatever two threads do at the same time, each ends once and none is lost."""


def test_an_event_while_an_operation_is_parked_is_not_lost(explore, world):
    def scenario(explorer):
        here = world(explorer)
        return here.park, here.announce, here.ends_once

    explore(scenario, pure=500, native=50)


def test_expiry_and_event_complete_an_operation_once(explore, world):
    def scenario(explorer):
        here = world(explorer).park()
        return here.announce, here.expire, here.ends_once

    explore(scenario, pure=1000, native=200)


def test_events_on_two_keys_complete_an_operation_once(explore, world):
    def scenario(explorer):
        here = world(explorer).park(("a", "b"))
        return here.announce, lambda: here.announce("b"), here.ends_once

    explore(scenario, pure=200, native=200)


def test_an_operation_that_is_forced_while_it_is_parked_does_not_stay(explore, world):
    def scenario(explorer):
        here = world(explorer)
        return here.park, here.operation.force_complete, here.ends_once

    explore(scenario, pure=50, native=20)


def test_an_operation_that_expires_while_it_is_parked_ends_once(explore, world):
    def scenario(explorer):
        here = world(explorer)

        def check():
            here.expire()  # it was parked after the first look, or expired in it
            here.ends_once()

        return here.park, here.expire, check

    explore(scenario, pure=500, native=100)


def test_cancelling_a_key_against_an_event_completes_or_returns_the_operation(explore, world):
    def scenario(explorer):
        here = world(explorer).park()
        cancelled = []

        def check():
            # Whoever cancels may be told of an operation that is being completed just then; it
            # never gets lost between the two.
            assert here.operation.completions + len(cancelled) >= 1
            assert here.operation.completions <= 1
            here.is_whole()

        return (
            here.announce,
            lambda: cancelled.extend(here.purgatory.cancel_for_key(here.key("a"))),
            check,
        )

    explore(scenario, pure=500, native=20)


def test_a_purge_removes_nothing_that_waits(explore, world):
    def scenario(explorer):
        here = world(explorer, purge_interval=0)
        gone = here.new_operation()
        here.park(("a", "b"), gone)
        gone.force_complete()

        def check():
            assert here.timer.size() == 1
            here.announce()
            here.ends_once()

        return here.park, lambda: here.purgatory.advance_clock(0), check

    explore(scenario, pure=100, native=1000, pauses_after=False)


def test_an_operation_parked_while_the_last_of_its_key_leaves_is_found_by_the_next_event(
    explore, world
):
    def scenario(explorer):
        here = world(explorer)
        last = here.new_operation()
        here.park(("a",), last)
        last.ready = True

        def check():
            assert last.completions == 1
            here.announce()
            here.ends_once()

        return here.park, lambda: here.purgatory.check_and_complete(here.key("a")), check

    explore(scenario, pure=100, native=500, pauses_after=False)


def test_shutdown_while_an_operation_is_parked_leaves_nothing_in_the_timer(explore, world):
    def scenario(explorer):
        here = world(explorer)
        refused = []

        def park():
            try:
                here.park()
            except RuntimeError as refusal:
                refused.append(refusal)

        def check():
            assert here.timer.size() == 0
            assert here.operation.completions == 0

        return park, here.purgatory.shutdown, check

    explore(scenario, pure=1000, native=20)
