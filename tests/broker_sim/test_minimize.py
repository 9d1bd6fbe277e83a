"""What fails gets as small as it can be, within its limits."""

from broker_sim_purgatory import VirtualClock

from broker_sim.minimize import Minimizer


def _fewest(items, needed, **limits):
    tried = []

    def still_fails(candidate):
        tried.append(candidate)
        return needed.issubset(candidate)

    search = Minimizer(tuple(items), still_fails, **limits)
    search.leave_out(lambda each: each, lambda _, rest: tuple(rest))
    assert search.tries == len(tried)
    return search


def test_what_is_needed_together_only_is_kept():
    search = _fewest(range(16), {3, 11}, max_tries=200)
    assert search.best == (3, 11)
    assert search.tries < 40
    assert not search.is_over


def test_search_stops_after_so_many_tries():
    search = _fewest(range(16), {3, 11}, max_tries=3)
    assert {3, 11} < set(search.best)
    assert search.is_over


def test_search_stops_when_its_time_is_over():
    clock = VirtualClock()
    search = Minimizer("abc", lambda _: True, max_tries=9, max_ms=10, clock=clock)
    assert search.accepts("ab")
    clock.advance(10)
    assert not search.accepts("a")
    assert search.best == "ab"
