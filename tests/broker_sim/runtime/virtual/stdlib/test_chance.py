"""Chance in virtual time follows from the seed."""

from __future__ import annotations

import os
import random
import secrets
import types
import uuid

import pytest

from broker_sim.runtime.virtual.stdlib import install

install()


def draw_everything():
    return (
        random.random(),
        random.randint(1, 1000),
        random.choice(range(1000)),
        random.sample(range(1000), 3),
        random.getrandbits(64),
        random.Random().random(),
        random.SystemRandom().random(),
        os.urandom(8),
        secrets.token_hex(8),
        uuid.uuid4(),
        uuid.uuid1(),
    )


def test_every_source_of_chance_repeats_and_differs_between_seeds(run):
    async def main():
        return draw_everything()

    first, again, other = run(main, seed=1), run(main, seed=1), run(main, seed=2)
    assert first == again
    assert all(one != two for one, two in zip(first, other, strict=True))


def test_outside_of_a_loop_chance_is_chance():
    assert all(one != two for one, two in zip(draw_everything(), draw_everything(), strict=True))
    random.seed(7)
    drawn = random.random()
    random.seed(7)
    assert random.random() == drawn == random.Random(7).random()


def module(name: str, source: str) -> types.ModuleType:
    made = types.ModuleType(name)
    exec(source, made.__dict__)
    return made


def test_late_import_disturbs_no_random_numbers(run):
    """rich draws a number while it is imported: in the first run of a process only."""
    late = "import random, uuid, os\nNUMBERS = random.random(), uuid.uuid4(), os.urandom(3)"
    draws = "import random, uuid\ndef draw(): return random.random(), uuid.uuid4()"

    async def main():
        user = module("user", draws)
        before = user.draw()
        if imports:
            module("late", late)
        return before, user.draw()

    imports = True
    with_import = run(main)
    imports = False
    assert run(main) == with_import


def test_names_of_modules_change_nothing_but_libraries_draw_by_themselves(run):
    async def main(*modules):
        return [made.draw() for made in modules]

    source = "import random\ndef draw(): return random.random()"
    one, other = module("one", source), module("other", source)
    library = types.ModuleType("library")
    exec(compile(source, "/lib/site-packages/library.py", "exec"), library.__dict__)
    assert run(lambda: main(one, one)) == run(lambda: main(other, one))
    mixed = run(lambda: main(one, library, other))
    assert mixed[::2] == run(lambda: main(one, other))
    assert len(set(mixed)) == 3


def test_program_may_seed_its_own_stream(run):
    async def main():
        random.seed(7)
        return random.random()

    assert run(main, seed=1) == run(main, seed=2) == random.Random(7).random()


def test_uuid_of_time_has_virtual_time_and_is_valid(run):
    async def main():
        return uuid.uuid1()

    made = run(main)
    assert (made.version, made.variant) == (1, uuid.RFC_4122)
    assert (made.time - 0x01B21DD213814000) // 10_000 == 1_700_000_000_000


@pytest.mark.parametrize("size", [0, 1, 33])
def test_random_bytes_have_the_requested_size(run, size):
    async def main():
        return len(os.urandom(size)), len(os.getrandom(size))

    assert run(main) == (size, size)
