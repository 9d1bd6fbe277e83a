"""Archives sent to executors: there as long as the process, gone when it ends."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: make setup-spark")
pytestmark = pytest.mark.spark

PROGRAM = """
from pathlib import Path
from types import SimpleNamespace

from broker_sim_integration.pipeline.spark import archive

sent = []
conf = SimpleNamespace(contains=lambda key: False)
context = SimpleNamespace(addPyFile=sent.append, getConf=lambda: conf, master="spark://host:7077")
spark = SimpleNamespace(sparkContext=context)
archive.ship_code(spark)
archive.ship_modules(spark)
print(*(Path(path).name.split("-")[0] for path in sent if Path(path).is_file()))
"""


def test_archives_stay_until_the_process_ends(tmp_path):
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert result.stdout == "broker_sim.zip modules\n"
    assert list(tmp_path.iterdir()) == []
