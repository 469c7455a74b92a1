# SPDX-License-Identifier: Apache-2.0
"""Files of events as a table of Arrow."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pyarrow as pa

from pyflinkcep.errors import InputError, InvalidArgumentError, NotSupportedError, did_you_mean

_FORMATS = {
    ".csv": "CSV",
    ".tsv": "CSV",
    ".json": "JSON lines",
    ".jsonl": "JSON lines",
    ".ndjson": "JSON lines",
}
"""What files are by the ends of their names; all others are Parquet."""


Wanted = Callable[[str], bool]
"""Whether a column is needed, by its name."""


def read_files(path: str, wanted: Wanted | None = None) -> pa.Table:
    """
    Return the events of a file, or of a folder whose partitions are columns, last.

    Of Parquet, which stores columns apart, only wanted ones are read.
    """
    if not os.path.exists(path):
        folder, name = os.path.split(path)
        known = os.listdir(folder or ".") if os.path.isdir(folder or ".") else []
        ending = os.path.splitext(name)[1].lower()
        known = [other for other in known if os.path.splitext(other)[1].lower() == ending]
        raise InvalidArgumentError(
            f"expected events, got the path {path!r}, where there is nothing",
            did_you_mean(name, known, _FILES),
        )
    kind = "Parquet"
    try:
        names = [path] if os.path.isfile(path) else sorted(_files_in(path))
        _refuse_tables(path, names)
        kinds = {_kind(name): name for name in names}
        kind = next(iter(kinds), kind)
        if len(kinds) > 1:
            raise InputError(
                f"{path!r} has files of {' and '.join(sorted(kinds))}, such as "
                f"{', '.join(map(repr, sorted(kinds.values())))}",
                "pass a folder with files of one format",
            )
        found, keys = _read(path, kind, names, wanted if kind == "Parquet" else None)
    except (pa.ArrowException, OSError) as cause:
        raise InputError(
            f"{path!r} cannot be read as {kind}: {cause}", _how_to_read(path, kind)
        ) from cause
    for name in filter(found.column_names.__contains__, keys.names):
        place = found.column_names.index(name)
        found = found.set_column(place, name, _inferred(found.column(place)))
    return found


_FILES = (
    "pass the path of a file or folder of Parquet, CSV (.csv, .tsv) or JSON lines (.json, .jsonl)"
)


def _how_to_read(path: str, kind: str) -> str:
    """Return what to do with files that are not what they seem to be."""
    if kind == "JSON lines":
        return "have an object on each line; of an array, pass json.load(open(path))"
    if kind == "Parquet" and os.path.splitext(path)[1].lower() not in ("", ".parquet", ".pq"):
        return f"{_FILES}; of another form, read it yourself, and pass the table"
    return "read it yourself, and pass the table"


def _files_in(folder: str) -> Iterable[str]:
    """Yield the files below a folder that hold data."""
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(("_", "."))]
        yield from (os.path.join(place, name) for name in files if name[0] not in "_.")


def _kind(file: str) -> str:
    """Return the format of a file, which may be compressed."""
    stem, end = os.path.splitext(file.lower())
    if end in (".gz", ".bz2", ".zst", ".lz4"):
        end = os.path.splitext(stem)[1]
    return _FORMATS.get(end, "Parquet")


def stamps(path: str) -> list[tuple[str, int, int]]:
    """Return what changes if files do: the name, size and time of each."""
    names = [path] if os.path.isfile(path) else sorted(_files_in(path))
    found = ((name, os.stat(name)) for name in names)
    return [(name, stat.st_size, stat.st_mtime_ns) for name, stat in found]


def _read(
    path: str, kind: str, names: list[str], wanted: Wanted | None
) -> tuple[pa.Table, pa.Schema]:
    """Return the rows of files, and the fields that their folders are named after."""
    import pyarrow.dataset as ds  # which takes as long to load as the rest of Arrow

    format_ = _dataset_format(kind, names)
    files = ds.dataset(path, format=format_)
    if not files.files:
        raise InputError(f"{path!r} has no file of {kind}", "pass a folder that has one")
    inside = [os.path.relpath(file, path).split(os.sep)[:-1] for file in files.files]
    named = (folder.partition("=") for folders in inside for folder in folders)
    keys = pa.schema([(key, pa.string()) for key in dict.fromkeys(k for k, s, _ in named if s)])
    own = [fragment.physical_schema for fragment in files.get_fragments()]
    own = [pa.schema(field for field in one if field.name not in keys.names) for one in own]
    schema = pa.unify_schemas([*own, keys], promote_options="permissive")
    by_name = ds.partitioning(keys, flavor="hive")
    columns = None if wanted is None else list(filter(wanted, schema.names)) or schema.names[:1]
    return ds.dataset(path, schema, format=format_, partitioning=by_name).to_table(columns), keys


def _dataset_format(kind: str, names: list[str]) -> Any:
    import pyarrow.csv as csv
    import pyarrow.dataset as ds

    if kind == "JSON lines":
        return ds.JsonFileFormat()
    if kind == "Parquet":
        return ds.ParquetFileFormat()
    # An empty cell is NULL, as in Spark; a text such as NA, or a quoted nothing, is a text.
    missing = csv.ConvertOptions(
        null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    is_tabbed = all(".tsv" in os.path.basename(name).lower() for name in names)
    form = csv.ParseOptions(delimiter="\t" if is_tabbed else ",", newlines_in_values=True)
    return ds.CsvFileFormat(parse_options=form, convert_options=missing)


def _inferred(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return values of folders' names in the first type that Spark tries and all of them have."""
    for type_ in (pa.int32(), pa.int64(), pa.float64(), pa.date32(), pa.timestamp("us")):
        found = attempted(partial(column.cast, type_))
        if found is not None:
            return found
    return column


_TABLES = {
    "_delta_log": ("Delta", "deltalake: DeltaTable(path).to_pyarrow_table()"),
    ".hoodie": ("Hudi", "Spark: spark.read.format('hudi').load(path).toArrow()"),
    "metadata": ("Iceberg", "pyiceberg: table.scan().to_arrow()"),
}
"""What marks the folder of a table whose files are not all of it, or not all of them its own."""


def _refuse_tables(path: str, files: Iterable[str]) -> None:
    """Refuse files of a table whose log says which of their rows there are."""
    folders = {os.path.abspath(path), *(os.path.dirname(os.path.abspath(file)) for file in files)}
    seen: set[str] = set()
    for folder in folders:
        while folder not in seen:
            seen.add(folder)
            for name, (kind, how) in _TABLES.items():
                log = os.path.join(folder, name)
                if os.path.isdir(log) and (name != "metadata" or _has_metadata(log)):
                    raise NotSupportedError(
                        f"{path!r}: expected files of Parquet, got the {kind} table {folder!r}, "
                        "whose log says which rows of its files there are",
                        f"read its rows with {how}, and pass them",
                    )
            folder = os.path.dirname(folder)


def _has_metadata(folder: str) -> bool:
    return any(name.endswith(".metadata.json") for name in os.listdir(folder))


def attempted(convert: Callable[[], Any]) -> Any:
    """Return what a conversion gives; None if it fails, in Rust too."""
    try:
        return convert()
    except (pa.ArrowException, OverflowError, TypeError, ValueError, AttributeError):
        return None
    except BaseException as cause:
        if type(cause).__name__ == "PanicException":
            return None
        raise
