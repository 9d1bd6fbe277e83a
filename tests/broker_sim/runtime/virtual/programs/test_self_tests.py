"""Each function that the library replaces does the same in real and in virtual time; only time differs."""

import asyncio
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from broker_sim.runtime.virtual import run
from broker_sim.runtime.virtual.programs import Program, compiling, starting

pytestmark = [
    pytest.mark.threads,
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler: apt-get install gcc libc6-dev"),
]
HERE = Path(__file__).parent / "self_tests"
CALLED_BY_COMPILERS = {"__poll_chk", "__read_chk", "__recv_chk"}
"""What fortified programs call in place of poll, read and recv."""


@pytest.fixture(scope="module")
def self_test(tmp_path_factory):
    path = tmp_path_factory.mktemp("self_tests") / "self_test"
    flags = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["cc", *flags, "-o", path, *HERE.glob("*.c"), "-lpthread", "-ldl"], check=True)
    return path


async def echo(reader, writer):
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
    writer.close()


async def in_real_time(path):
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        process = await asyncio.create_subprocess_exec(
            path, "real", str(port), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        printed, errors = await process.communicate()
    assert (process.returncode, errors) == (0, b"")
    return printed.decode()


def in_virtual_time(path, seed=1):
    """Return what it prints, without the random bytes, and those."""

    async def main(loop):
        server = await asyncio.start_server(echo, "127.0.0.1", 9092)
        started = Program(loop, "self-test", [path, "virtual", "9092"])
        code = await started.wait()
        server.close()
        assert code == 0, started.text
        return started.text

    lines = run(main, seed).splitlines(keepends=True)
    chance = [line for line in lines if re.search(r" [0-9a-f]{8,}$", line)]
    return "".join(line for line in lines if line not in chance), chance


def test_results_are_those_of_real_time(self_test):
    printed, _ = in_virtual_time(self_test)
    assert "wrong time" not in printed
    assert printed == asyncio.run(in_real_time(self_test))


def test_chance_follows_from_the_seed(self_test):
    _, chance = in_virtual_time(self_test, seed=1)
    _, again = in_virtual_time(self_test, seed=1)
    _, other = in_virtual_time(self_test, seed=2)
    assert chance == again
    assert len(chance) == 8
    assert not set(chance) & set(other)


def test_every_replaced_function_is_called_by_a_self_test_or_refused():
    names = subprocess.run(
        ["nm", "-D", "--defined-only", compiling.library()], capture_output=True, text=True, check=True
    )
    replaced = {line.split()[-1] for line in names.stdout.splitlines()} - CALLED_BY_COMPILERS
    called = " ".join(path.read_text() for path in HERE.glob("*.c"))
    refused = (compiling.SOURCES / "refusals.c").read_text()
    missing = {name for name in replaced if not re.search(rf"\b{name}\b", called)}
    twins_of_64_bits = {name for name in missing if name.endswith("64") and name[:-2] in replaced}
    assert {name for name in missing - twins_of_64_bits if not re.search(rf"\b{name}\b", refused)} == set()


def test_library_compiles_without_a_warning(tmp_path):
    compiling.compile_library(tmp_path / "library.so", "-Werror")


@pytest.mark.soak(part="clients")
def test_no_undefined_behaviour(self_test, tmp_path, monkeypatch):
    checked = tmp_path / "library.so"
    compiling.compile_library(checked, "-fsanitize=undefined", "-fno-sanitize-recover=undefined", "-static-libubsan")
    monkeypatch.setattr(starting, "library", lambda: checked)
    printed, _ = in_virtual_time(self_test)
    assert "wrong time" not in printed
