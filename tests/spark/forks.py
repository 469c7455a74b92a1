# SPDX-License-Identifier: Apache-2.0
"""
Start the Python processes of Spark's driver as forks of one whose imports are done.

Each operator of a stream starts one when its query starts, and no daemon does it. As a script this
is the Python that Spark is told of: it asks the server of a socket for a fork with its arguments,
folder, environment and files, and waits for it.
"""

from __future__ import annotations

import marshal
import os
import select
import socket
import sys


def ask(path: str, arguments: list[str]) -> int:
    """Return the status with which a fork ends that runs a module with these arguments."""
    with socket.socket(socket.AF_UNIX) as server:
        try:
            server.connect(path)
        except OSError:  # it is not ready yet, or there is none
            os.execv(sys.executable, [sys.executable, *arguments])
        socket.send_fds(server, [b"."], [0, 1, 2])
        server.sendall(marshal.dumps((arguments, os.getcwd(), dict(os.environ))))
        server.shutdown(socket.SHUT_WR)
        return int.from_bytes(server.recv(1) or b"\1")


def serve(path: str) -> None:
    """Fork for each request until whoever started this has ended."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        running: set[int] = set()
        while sys.stdin not in select.select([listening, sys.stdin], [], [])[0]:
            connection, _ = listening.accept()
            with connection:
                number = os.fork()
                if not number:
                    listening.close()
                    _run(connection)
            running = {one for one in {*running, number} if not os.waitpid(one, os.WNOHANG)[0]}


def _run(connection: socket.socket) -> None:
    """Be the process that was asked for."""
    import runpy

    status = 1
    try:
        _, files, _, _ = socket.recv_fds(connection, 1, 3)
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        with connection.makefile("rb") as request:
            (_, module, *rest), folder, environment = marshal.loads(request.read())
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv[1:] = rest
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        try:
            sys.stdout.flush()
            connection.sendall(bytes([status]))
        finally:  # whether or not who asked is still there
            os._exit(status)


if __name__ == "__main__":
    if sys.argv[1:2] != ["--serve"]:
        raise SystemExit(ask(sys.argv[1], sys.argv[2:]))
    import gc

    import pandas  # noqa: F401
    import pyarrow  # noqa: F401
    from pyspark.sql.streaming import stateful_processor_api_client  # noqa: F401

    import pyflinkcep.spark.worker.processor  # noqa: F401

    gc.freeze()
    serve(sys.argv[2])
