"""Each suite of examples/suites, in an empty environment with the wheel and what its application needs."""

import sys

import pytest

pytestmark = [pytest.mark.install, pytest.mark.soak(part="wheels")]

TESTS_OF_A_SUITE = 13
SUITES = {
    "aiokafka": (2 * TESTS_OF_A_SUITE, ["aiokafka", "anyio"]),  # in real and in virtual time
    "confluent_kafka": (TESTS_OF_A_SUITE, ["confluent-kafka"]),
    "faststream": (TESTS_OF_A_SUITE, ["faststream[kafka]"]),
    "fastapi": (TESTS_OF_A_SUITE, ["fastapi", "httpx", "aiokafka"]),
}


@pytest.mark.parametrize("name", SUITES)
def test_suite_passes_on_two_workers(install, wheel, run_suite, tmp_path, name):
    tests, packages = SUITES[name]
    environment = install(tmp_path, sys.executable, wheel)
    assert run_suite(environment, name, *packages).startswith(f"{tests} passed")
