"""What the pages type into a terminal does what they say."""

import os
import runpy
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

PAGES = runpy.run_path(str(Path(__file__).with_name("pages.py")))
SPARK_LIMIT_S = 600


def typed_here(block):
    """Whether a block is for the terminal, and not typed by another test."""
    return "file" in block.words or (block.language == "console" and "by" not in block.words)


def _cases():
    for path in PAGES["PAGES"]:
        blocks = [block for block in PAGES["read_page"](path).blocks if typed_here(block)]
        if any(block.language == "console" for block in blocks):
            marks = [pytest.mark.clients] * any(block.needs_client for block in blocks)
            marks += [pytest.mark.spark] * any(block.needs_spark for block in blocks)
            yield pytest.param(blocks, id=PAGES["name_of"](path), marks=marks)


def _give_up(reason):
    (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)


@pytest.mark.parametrize("blocks", list(_cases()))
def test_commands_of_a_page_print_what_it_shows(blocks, play, request):
    needs_spark = any(block.needs_spark for block in blocks)
    if any("kcat" in block.text for block in blocks) and shutil.which("kcat") is None:
        _give_up("kcat is missing: apt-get install -y --no-install-recommends kcat")
    if needs_spark and (find_spec("pyspark") is None or shutil.which("java") is None):
        _give_up("Spark or Java is missing: make setup-spark; apt-get install -y openjdk-17-jre-headless")
    submitted = request.getfixturevalue("submitted") if needs_spark else {}
    play(blocks, **({"limit_s": SPARK_LIMIT_S} if needs_spark else {}), **submitted)
