"""Spark: `map_in_arrow` and `extract_array` on a standalone cluster with two workers, one of whose executors is killed."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from examples import run_examples

import plaincall as pc
from plaincall.data import SPARK_STRUCT, extract_array, map_in_arrow

pyspark = pytest.importorskip("pyspark")
pytestmark = pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java")

CALL = "Row {row}.\n!!!GADGET_START:read:a\n!!!ARG:path\nfile-{row}.txt\n!!!GADGET_END\nDone."
ROWS, FILES = 4000, 8
# The executors import the package from where this process does, and the functions of this file.
PATH = os.pathsep.join([str(Path(pc.__file__).parents[1]), str(Path(__file__).parent)])
SCHEMA = f"id long, text string, {SPARK_STRUCT}"


def text_of(row: int) -> str | None:
    if row % 7 == 0:
        return None
    text = CALL.replace("{row}", str(row))
    return text[:-20] if row % 11 == 0 else text


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("spark") / "in"
    folder.mkdir()
    for number in range(FILES):
        rows = range(number * ROWS // FILES, (number + 1) * ROWS // FILES)
        table = pyarrow.table({"id": list(rows), "text": [text_of(row) for row in rows]})
        pyarrow.parquet.write_table(table, folder / f"{number}.parquet")
    return folder


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(condition: Any, what: str) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until, f"{what} did not happen in a minute"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Starts a master and two workers, and yields the address of the cluster."""
    folder = tmp_path_factory.mktemp("cluster")
    home = Path(pyspark.__file__).parent
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(folder),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": PATH,
    }
    names = ("SPARK_LOCAL_IP", "PYSPARK_PYTHON")
    os.environ.update({name: environment[name] for name in names})
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    deploy = "org.apache.spark.deploy"
    programs = [
        [f"{deploy}.master.Master", "-h", "127.0.0.1", "-p", str(port), "--webui-port", "0"],
        *[[f"{deploy}.worker.Worker", "-c", "1", "-m", "1g", "-h", "127.0.0.1", "--webui-port", "0", address]] * 2,
    ]
    processes = []
    try:
        for number, program in enumerate(programs):
            log = (folder / f"{number}.log").open("wb")
            command = [str(home / "bin/spark-class"), *program]
            process = subprocess.Popen(
                command, env=environment, stdout=log, stderr=log, cwd=folder, start_new_session=True
            )
            processes.append(process)
            expected = b"I have been elected leader" if number == 0 else b"Successfully registered with master"
            wait_for(lambda file=folder / f"{number}.log", text=expected: text in file.read_bytes(), command[1])
        yield address
    finally:
        for process in reversed(processes):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture(scope="module")
def spark(cluster: str) -> Iterator[Any]:
    from pyspark.sql import SparkSession

    settings = {
        "spark.executor.memory": "600m",
        "spark.executor.cores": "1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "50",
        "spark.executorEnv.PYTHONPATH": PATH,
    }
    builder = SparkSession.builder.master(cluster)
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    # Both workers.
    gateway: Any = session._jsc
    wait_for(lambda: gateway.sc().getExecutorMemoryStatus().size() == 3, "the start of two executors")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def reference(source: Path) -> list[dict[str, Any]]:
    """The table of one process."""
    rows: list[dict[str, Any]] = pyarrow.table(pc.table(pyarrow.parquet.read_table(source))).to_pylist()
    return sorted(rows, key=lambda row: row["id"])


def rows_of(frame: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = frame.toArrow().to_pylist()
    return sorted(rows, key=lambda row: row["id"])


def test_the_table_is_that_of_one_process(spark: Any, source: Path, reference: list[dict[str, Any]]) -> None:
    frame = spark.read.parquet(str(source)).mapInArrow(map_in_arrow, SCHEMA)
    assert rows_of(frame) == reference


def test_an_arrow_udf(spark: Any, source: Path, reference: list[dict[str, Any]]) -> None:
    functions = pytest.importorskip("pyspark.sql.functions")
    if not hasattr(functions, "arrow_udf"):
        pytest.skip("this version of Spark has no Arrow UDF")

    udf = functions.arrow_udf(extract_array, f"struct<{SPARK_STRUCT}>")
    frame = spark.read.parquet(str(source)).limit(300)
    frame = frame.withColumn("row", udf("text"))
    known = {row["id"]: row for row in reference}
    for row in rows_of(frame):
        assert row["row"] == {name: known[row["id"]][name] for name in ("content", "calls", "error")}


def test_a_killed_executor_loses_and_repeats_nothing(
    spark: Any, source: Path, reference: list[dict[str, Any]], tmp_path: Path
) -> None:
    marks = str(tmp_path)

    def slow(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        # A process of Python's is the child of its daemon, and that of its executor.
        for batch in map_in_arrow(batches):
            (Path(marks) / str(os.getpid())).touch()
            time.sleep(0.05)
            yield batch

    output = tmp_path / "out"
    frame = spark.read.parquet(str(source)).mapInArrow(slow, SCHEMA)
    killed: list[int] = []

    def kill() -> None:
        wait_for(lambda: len(list(tmp_path.iterdir())) >= 2, "the work of two executors")
        time.sleep(0.3)
        worker = int(next(path.name for path in tmp_path.iterdir() if path.name.isdigit()))
        executor = parent_of(parent_of(worker))
        command = Path(f"/proc/{executor}/cmdline").read_bytes()
        assert b"CoarseGrainedExecutorBackend" in command
        os.kill(executor, signal.SIGKILL)
        killed.append(executor)

    killer = threading.Thread(target=kill)
    killer.start()
    frame.write.parquet(str(output))
    killer.join()
    assert len(killed) == 1
    written = pyarrow.parquet.read_table(output).to_pylist()
    assert sorted(written, key=lambda row: row["id"]) == reference


def test_examples_of_the_page_run(spark: Any) -> None:
    assert run_examples("docs/python-data.md", "python spark", {"spark": spark}) > 0


def parent_of(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.split("PPid:")[1].split()[0])
