"""A verb is written once; each face calls it in its own way."""

import inspect

import pytest

from broker_sim.control.verb import AsyncFace, BlockingFace, Face, HttpAddress, verb, verbs_of, waiting_verb


class Verbs(Face):
    @verb()
    def pause(self, broker_id: int) -> str:
        """Stop it."""
        return f"paused {broker_id}"

    @waiting_verb()
    async def roll_all(self, *, slowly: bool = False) -> str:
        """Restart it."""
        return f"rolled {slowly}"

    @verb("GET", "/status")
    def status(self) -> str:
        return "fine"

    def helper(self) -> str:
        return self.status()


class OnLoop(Verbs, AsyncFace):
    def bind_verb(self, method):
        return method.__get__(self)


class Recording(Verbs, BlockingFace):
    def __init__(self):
        self.calls = []

    def bind_verb(self, method):
        return lambda *args, **kwargs: self.calls.append((method.__name__, args, kwargs))


def test_face_decides_how_a_verb_is_carried_out():
    assert OnLoop().pause(2) == "paused 2"
    face = Recording()
    face.pause(2)
    face.roll_all(slowly=True)
    assert face.calls == [("pause", (2,), {}), ("roll_all", (), {"slowly": True})]


def test_waiting_verb_is_a_coroutine_on_an_async_face():
    rolling = OnLoop().roll_all(slowly=True)
    with pytest.raises(StopIteration, match="rolled True"):
        rolling.send(None)


def test_exactly_all_verbs_are_listed_in_order():
    assert list(verbs_of(OnLoop)) == ["pause", "roll_all", "status"]
    assert [item.waits for item in verbs_of(OnLoop).values()] == [False, True, False]


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("pause", HttpAddress("POST", "/brokers/{broker_id}/pause")),
        ("roll_all", HttpAddress("POST", "/roll-all")),
        ("status", HttpAddress("GET", "/status")),
    ],
)
def test_address_follows_from_the_name_unless_it_is_given(name, address):
    assert verbs_of(OnLoop)[name].address == address


def test_help_and_signature_are_those_of_the_method():
    assert inspect.getdoc(OnLoop.pause) == "Stop it."
    assert list(inspect.signature(OnLoop.pause).parameters) == ["self", "broker_id"]
    assert list(OnLoop.pause.parameters) == ["broker_id"]
