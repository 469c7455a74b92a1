# SPDX-License-Identifier: Apache-2.0
"""Files of events as a table of Arrow."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import attrs
import pyarrow as pa

from pyflinkcep.errors import InputError, InvalidArgumentError, NotSupportedError, did_you_mean

_JSON = "JSON lines"
_FORMATS = {
    ".csv": "CSV",
    ".tsv": "CSV",
    ".json": _JSON,
    ".jsonl": _JSON,
    ".ndjson": _JSON,
}
"""What files are by the ends of their names; all others are Parquet."""


Wanted = Callable[[str], bool]
"""Whether a column is needed, by its name."""


@attrs.frozen(eq=False)
class EventFiles:
    """A file of events, a folder of files, or those that a pattern of names has."""

    path: str  # What names them
    kind: str  # Their format
    dataset: Any  # The files, with all of their columns
    folders: pa.Schema  # The columns that folders are named after, in the types of their values
    rows: int  # The number of events; -1 if only reading them tells

    @classmethod
    def of(cls, path: str) -> EventFiles:
        """Find files, and read what is in them."""
        names = _named(path)
        with _reading(path, "Parquet"):
            found = [file for name in names for file in _found_in(name)]
            _refuse_tables(path, found)
            kinds = {_kind(name): name for name in found}
            kind = next(iter(kinds), "Parquet")
            if len(kinds) > 1:
                raise InputError(
                    f"{path!r} has files of {' and '.join(sorted(kinds))}, such as "
                    f"{', '.join(map(repr, sorted(kinds.values())))}",
                    "pass a folder with files of one format",
                )
        with _reading(path, kind):
            return cls._opened(path, kind, names[0] if names == [path] else found, found)

    @classmethod
    def _opened(cls, path: str, kind: str, source: Any, names: list[str]) -> EventFiles:
        import pyarrow.dataset as ds  # which takes as long to load as the rest of Arrow

        format_, base = _dataset_format(kind, names), _base(path)
        files = ds.dataset(source, format=format_)
        if not files.files:
            raise InputError(f"{path!r} has no file of {kind}", "pass a folder that has one")
        inside = [os.path.relpath(file, base).split(os.sep)[:-1] for file in files.files]
        named = (folder.partition("=") for folders in inside for folder in folders)
        keys = pa.schema([(key, pa.string()) for key in dict.fromkeys(k for k, s, _ in named if s)])
        fragments = list(files.get_fragments())
        own = [fragment.physical_schema for fragment in fragments]
        own = [pa.schema(field for field in one if field.name not in keys.names) for one in own]
        schema = pa.unify_schemas([*own, keys], promote_options="permissive")
        by_name = ds.partitioning(keys, flavor="hive")
        apart = None if isinstance(source, str) else base
        found = ds.dataset(
            source, schema, format=format_, partitioning=by_name, partition_base_dir=apart
        )
        rows = sum(part.count_rows() for part in fragments) if kind == "Parquet" else -1
        return cls(path, kind, found, _types_of_folders(found, keys), rows)

    def table(self, wanted: Wanted | None = None) -> pa.Table:
        """Return all events; of Parquet, which stores columns apart, only wanted columns."""
        names = self.dataset.schema.names
        columns = list(filter(wanted, names)) or names[:1] if wanted and self.is_parquet else None
        if self.kind == _JSON:
            return pa.concat_tables([self.nothing, *self.tables()])
        with _reading(self.path, self.kind):
            return self._typed(self.dataset.to_table(columns))

    @property
    def nothing(self) -> pa.Table:
        """A table with the columns of the events, and no event."""
        return self._typed(self.dataset.schema.empty_table())

    def tables(self, columns: list[str] | None = None) -> Iterator[pa.Table]:
        """Yield the events in the order of ``table``, some at a time, with all or some columns."""
        with _reading(self.path, self.kind):
            if not self.is_parquet and self.kind != _JSON:
                for batch in self.dataset.to_batches(columns, **_LITTLE):
                    yield self._typed(pa.Table.from_batches([batch]))
                return
            for fragment in self.dataset.get_fragments():
                yield from self._tables_of(fragment, columns)

    def _tables_of(self, fragment: Any, columns: list[str] | None) -> Iterator[pa.Table]:
        """Yield the events of a file of Parquet or JSON lines."""
        import pyarrow.dataset as ds

        names = self.dataset.schema.names if columns is None else columns
        fields = [self.dataset.schema.field(name) for name in names]
        folders = ds.get_partition_keys(fragment.partition_expression)
        read = [field for field in fields if field.name not in self.folders.names]
        for batch in (_parquet_batches if self.is_parquet else _json_batches)(fragment.path, read):
            arrays = [
                batch.column(field.name).cast(field.type)
                if field.name in batch.schema.names
                else pa.repeat(pa.scalar(folders.get(field.name), field.type), batch.num_rows)
                for field in fields
            ]
            yield self._typed(pa.Table.from_arrays(arrays, schema=pa.schema(fields)))

    @property
    def is_parquet(self) -> bool:
        """Whether columns are stored apart, and rows counted."""
        return self.kind == "Parquet"

    def nbytes(self, names: Sequence[str]) -> int:
        """Return about how many bytes some columns take in memory; of texts, all that are read."""
        size = sum(os.path.getsize(file) for file in self.dataset.files)
        if not self.is_parquet:
            packed = any(file.lower().endswith(_PACKED) for file in self.dataset.files)
            return size * (_TIMES_PACKED if packed else _TIMES_TEXT)
        widths = [_width(self.dataset.schema.field(name).type) for name in names]
        most = self.rows * sum(_MOST_WIDTH if width is None else width for width in widths)
        if None not in widths or 4 * size + most < _SMALL:
            return most
        first = next(self.tables(list(names)), None)
        each: int = 0 if first is None else first.nbytes // max(first.num_rows, 1) + 1
        return self.rows * each

    def _typed(self, table: pa.Table) -> pa.Table:
        """Return a table with the columns of folders in their types."""
        for name in filter(table.column_names.__contains__, self.folders.names):
            place, type_ = table.column_names.index(name), self.folders.field(name).type
            table = table.set_column(place, name, table.column(place).cast(type_))
        return table


def _parquet_batches(path: str, fields: list[pa.Field]) -> Iterator[pa.RecordBatch]:
    """Yield a file, not by Arrow's scanner, which reads up to a gigabyte ahead of who takes it."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, pre_buffer=False) as file:
        own = set(file.schema_arrow.names)
        yield from file.iter_batches(_ROWS, columns=[f.name for f in fields if f.name in own])


def _json_batches(path: str, fields: list[pa.Field]) -> Iterator[pa.RecordBatch]:
    """Yield a file, not by Arrow's scanner, which makes NULLs of a line that it reads alone."""
    import pyarrow.json as json

    form = json.ParseOptions(pa.schema(fields), unexpected_field_behavior="ignore")
    with json.open_json(path, parse_options=form) as batches:
        yield from batches


_ROWS = 1 << 17  # of Parquet that are read at once
_LITTLE = {"batch_readahead": 1, "fragment_readahead": 1}
_SMALL = 64 << 20
_MOST_WIDTH = 256  # of texts and the like, as long as files are small
_TIMES_TEXT, _TIMES_PACKED = 2, 10  # how much larger than files of text their events may be
_PACKED = (".gz", ".bz2", ".zst", ".lz4")


def _width(type_: pa.DataType) -> int | None:
    """Return how many bytes a value takes; None if that depends on the value."""
    try:
        bits: int = type_.bit_width
    except ValueError:
        return None
    return -(-bits // 8)


@contextmanager
def _reading(path: str, kind: str) -> Iterator[None]:
    """Say of errors while files are read which ones they are."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as cause:
        raise InputError(
            f"{path!r} cannot be read as {kind}: {cause}", _how_to_read(path, kind)
        ) from cause


def _named(path: str) -> list[str]:
    """Return the files and folders that a path, or a pattern of paths, names."""
    if os.path.exists(path):
        return [path]
    names = sorted(glob.glob(path, recursive=True)) if glob.has_magic(path) else []
    if names:
        return names
    folder, name = os.path.split(path)
    known = os.listdir(folder or ".") if os.path.isdir(folder or ".") else []
    ending = os.path.splitext(name)[1].lower()
    known = [other for other in known if os.path.splitext(other)[1].lower() == ending]
    raise InvalidArgumentError(
        f"expected events, got the path {path!r}, where there is nothing",
        did_you_mean(name, known, _FILES),
    )


def _base(path: str) -> str:
    """Return the folder below which the names of folders are values of columns."""
    base = path
    while glob.has_magic(base) and not os.path.exists(base):
        base = os.path.dirname(base)
    return base or "."


def _found_in(path: str) -> list[str]:
    return [path] if os.path.isfile(path) else sorted(_files_in(path))


_FILES = (
    "pass the path of a file or folder of Parquet, CSV (.csv, .tsv) or JSON lines (.json, .jsonl)"
)


def _how_to_read(path: str, kind: str) -> str:
    """Return what to do with files that are not what they seem to be."""
    if kind == _JSON:
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
    if end in _PACKED:
        end = os.path.splitext(stem)[1]
    return _FORMATS.get(end, "Parquet")


def stamps(path: str) -> list[tuple[str, int, int]]:
    """Return what changes if files do: the name, size and time of each."""
    found = ((file, os.stat(file)) for name in _named(path) for file in _found_in(name))
    return [(name, stat.st_size, stat.st_mtime_ns) for name, stat in found]


def _dataset_format(kind: str, names: list[str]) -> Any:
    import pyarrow.csv as csv
    import pyarrow.dataset as ds

    if kind == _JSON:
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


def _types_of_folders(files: Any, keys: pa.Schema) -> pa.Schema:
    """Return the columns of folders in the first type that Spark tries and all values have."""
    import pyarrow.dataset as ds

    if not len(keys):
        return keys
    values = [ds.get_partition_keys(part.partition_expression) for part in files.get_fragments()]
    own = ((name, pa.array([of.get(name) for of in values], pa.string())) for name in keys.names)
    return pa.schema([(name, _inferred(column)) for name, column in own])


def _inferred(names: pa.Array) -> pa.DataType:
    for type_ in (pa.int32(), pa.int64(), pa.float64(), pa.date32(), pa.timestamp("us")):
        if attempted(partial(names.cast, type_)) is not None:
            return type_
    return names.type


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
