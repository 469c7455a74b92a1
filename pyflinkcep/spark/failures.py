# SPDX-License-Identifier: Apache-2.0
"""The errors of this package in those that Spark raises for them on the driver."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from pyflinkcep import errors
from pyflinkcep.errors import CepError

__all__ = ["cepError", "raised_plainly"]

_ERROR = re.compile(
    r"^\s*pyflinkcep\.errors\.(\w+): (.*?)"
    r"(?=\n *SQLSTATE: |\n\tat |\n=== Streaming Query|\n\nJVM stacktrace|\Z)",
    re.DOTALL | re.MULTILINE,
)


def cepError(exception: BaseException) -> CepError | None:
    """
    Return the error of this package that an error of Spark is about.

    Parameters
    ----------
    exception : Exception
        What Spark raised: a ``PythonException`` of an action, or the ``StreamingQueryException`` of
        ``query.awaitTermination()`` and ``query.exception()``.

    Returns
    -------
    CepError or None
        The error as it was on the worker, of its own class, with message and hint; None if the
        error has another cause.

    Examples
    --------
    >>> text = '''[STREAM_FAILED] Query [id = 7] terminated with exception: Traceback
    ...   File "unpack.py", line 57, in run
    ... pyflinkcep.errors.InputError: no column 'prise'
    ...
    ... Hint: did you mean 'price'?
    ...  SQLSTATE: 39000
    ... === Streaming Query ==='''
    >>> error = cepError(RuntimeError(text))
    >>> type(error).__name__, error.message, error.hint
    ('InputError', "no column 'prise'", "did you mean 'price'?")
    """
    if isinstance(exception, CepError):
        return exception
    found = list(_ERROR.finditer(str(exception)))
    if not found:
        return None
    name, text = found[-1].groups()
    kind = getattr(errors, name, CepError)
    message, _, hint = text.rstrip().partition("\n\nHint: ")
    error: CepError = kind(message, hint or None)
    return error


@contextmanager
def raised_plainly() -> Iterator[None]:
    """Raise this package's error in place of Spark's within a ``with``."""
    try:
        yield
    except PySparkException as cause:
        error = cepError(cause)
        if error is None:
            raise
        raise error from None  # Spark's text is in __context__
