"""Claims about calls whose results are passed on together."""

from broker_sim.runtime.combined_calls import call_all


def test_results_have_the_order_of_keys_whichever_comes_first():
    callbacks, together = {}, []
    call_all(["a", "b", "a"], callbacks.__setitem__, together.append)
    callbacks["b"](2)
    assert together == []
    callbacks["a"](1)
    assert [list(results.items()) for results in together] == [[("a", 1), ("b", 2)]]


def test_without_keys_the_result_is_there_at_once():
    together = []
    call_all([], None, together.append)
    assert together == [{}]
