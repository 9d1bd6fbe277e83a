"""What was seen of a high watermark is told for any time since."""

from broker_sim.chaos.random_run.checks.history import HighWatermarks


def test_last_one_up_to_that_time_is_told():
    seen = HighWatermarks()
    for now_ms, high_watermark in ((100, 3), (150, 3), (200, 7)):
        seen.note(1, 0, now_ms, high_watermark)
    assert [seen.at(1, 0, time_ms) for time_ms in (99, 100, 199, 200, 900)] == [-1, 3, 3, 7, 7]
    assert seen.at(2, 0, 900) == seen.at(1, 1, 900) == -1
