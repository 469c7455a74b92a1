# SPDX-License-Identifier: Apache-2.0
"""What all tests share: hypothesis profiles, the marker of a folder, one Spark session."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import HealthCheck, settings

_FIXTURES = HealthCheck.function_scoped_fixture  # that which path runs is set for all examples
settings.register_profile(
    "dev", max_examples=15, deadline=None, derandomize=True, suppress_health_check=[_FIXTURES]
)
settings.register_profile(
    "ci", max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow, _FIXTURES]
)
settings.register_profile("few", parent=settings.get_profile("dev"), max_examples=10)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

_SPARK_TESTS = Path(__file__).parent / "spark"
_ON_SAIL = os.environ.get("PYFLINKCEP_TEST_ENGINE") == "sail"


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks at its options
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Use three processes if the whole suite runs: much of a Spark test's time nothing computes."""
    option = config.option
    whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    is_worker = hasattr(config, "workerinput")  # which must not start workers of its own
    unset = getattr(option, "numprocesses", 0) is None
    if whole and unset and not is_worker and not option.usepdb:
        option.numprocesses, option.dist = 3, "loadgroup"
        # Else each of them compiles all tests, and each Python that tests start the package.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Iterator[list[pytest.Collector]]:
    """Look for examples in no file of tests, where there are none: a tenth of the time to collect."""
    found: list[pytest.Collector] = yield
    return [each for each in found if not isinstance(each, DoctestModule)]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let ``--dist loadgroup`` go by the groups of this suite."""
    if config.getvalue("dist") != "loadgroup":
        return None
    from tests.distribution import Distribution

    config.option.loadscopereorder = False  # what is collected first begins first
    return Distribution(config, log)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """
    Let each of several processes compile a part of the modules, which takes most of the time.

    Nothing is garbage meanwhile: to look for it takes a third of the time.
    """
    given = getattr(session.config, "workerinput", None)
    whole = session.config.args_source is pytest.Config.ArgsSource.TESTPATHS
    gc.disable()
    try:
        if whole and given is not None and not sys.dont_write_bytecode:
            from tests.distribution import compile_part

            compile_part(int(given["workerid"].removeprefix("gw")), given["workercount"])
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests that need a JVM; several processes begin with what takes long."""
    if _ON_SAIL:
        from tests.sail.left_out import leave_out

        leave_out(items)
    for item in items:
        needs_session = "spark" in getattr(item, "fixturenames", ())
        if needs_session or _SPARK_TESTS in item.path.parents:
            item.add_marker(pytest.mark.spark)
    if hasattr(config, "workerinput"):
        from tests.distribution import place

        items.sort(key=lambda item: place(item.nodeid))


def pytest_collection_finish() -> None:
    """Let garbage collections pass over what was imported and collected, and be fewer."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)  # tests hold much that is no garbage


@pytest.fixture(params=["kernel", "plain"])
def each_path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test with the compiled kernel and without."""
    from tests.kernel_harness import HAS_KERNEL

    if request.param == "kernel" and not HAS_KERNEL:
        pytest.skip("built without a C compiler, or switched off")
    monkeypatch.setenv("PYFLINKCEP_KERNEL", "1" if request.param == "kernel" else "0")


@pytest.fixture(scope="session")
def spark_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let what is started from here on use a home of Spark, and a Python, made for tests."""
    from tests.spark_home import make_spark_home, python_that_forks

    folder = tmp_path_factory.mktemp("spark")
    if "SPARK_HOME" not in os.environ:
        os.environ["SPARK_HOME"] = str(make_spark_home(folder))
    with python_that_forks(folder) as python:
        os.environ.setdefault("PYSPARK_PYTHON", python)
        yield


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Yield the one session of a test run, of Spark or Sail; core tests never import pyspark."""
    if not _ON_SAIL:
        request.getfixturevalue("spark_home")
        yield from _spark()
        return
    from pyflinkcep import local

    settings = {"spark.sql.session.timeZone": "UTC"}
    session = local.session("sail", cores=2, settings=settings)
    yield session
    session.stop()


def _spark() -> Iterator[Any]:
    """
    Yield a session that compiles no plans and changes none while they run, since most run once.

    See :func:`compiled_plans`.
    """
    from pyspark.sql import SparkSession

    from tests.checkpoints import LOCAL_CHECKPOINTS
    from tests.jvm import JVM_OPTIONS, remember_classes, share_settings

    remember_classes()
    provider = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    session = (
        SparkSession.builder.master("local[2]")
        .appName("pyflinkcep-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.extraJavaOptions", f"{JVM_OPTIONS} -XX:NewSize=768m")
        .config("spark.python.daemon.module", "tests.spark.daemon")
        .config("spark.python.sql.dataFrameDebugging.enabled", "false")  # a stack for each Column
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.streaming.stateStore.providerClass", provider)
        .config(*LOCAL_CHECKPOINTS)
        .getOrCreate()
    )
    share_settings(session)
    yield session
    session.stop()


@pytest.fixture
def compiled_plans(spark: Any) -> Iterator[None]:
    """Let Spark compile plans for a test, and change them while they run, as it does for users."""
    from tests.spark.support import configured

    users = {
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.codegen.wholeStage": "true",
        "spark.sql.codegen.factoryMode": "FALLBACK",
    }
    with configured(spark, users):
        yield
