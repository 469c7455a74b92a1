# SPDX-License-Identifier: Apache-2.0
"""Sigma rules and correlations of files: which events satisfy them, as SQL."""

from __future__ import annotations

import itertools
import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import attrs

from pyflinkcep.eql.conditions import FieldColumn, Fields
from pyflinkcep.errors import (
    CepError,
    InvalidArgumentError,
    NotSupportedError,
    Place,
    check_choice,
    counted,
    did_you_mean,
    suggesting,
)
from pyflinkcep.expressions.sql_types import cast_type
from pyflinkcep.expressions.tree import Column, Operation, Tree, quoted_name, spark_sql
from pyflinkcep.sigma.correlation import Correlation, name_of, read_correlation
from pyflinkcep.sigma.detection import Detection

if TYPE_CHECKING:
    from sigma.filters import SigmaFilter
    from sigma.processing.pipeline import ProcessingPipeline
    from sigma.rule import SigmaRule as ParsedRule

Logsources = Mapping[str, str] | Literal["ignore"]
LogSource = tuple[str | None, str | None, str | None]
"""The category, product and service of the events that a rule is about."""


@attrs.frozen(eq=False)
class SigmaRule:
    """A rule, read; its condition depends on the fields that events have."""

    name: str  # Its name, or else its id, or its title
    title: str
    level: str | None
    logsource: LogSource
    where: str | None  # SQL for the events of its log source; None for all
    _conditions: Sequence[Any]  # Of pySigma; one of them has to hold
    _names: dict[str, str]
    _raw: Sequence[str]
    _missing_is_null: bool

    def tree(self, fields: Fields) -> Tree:
        """Return whether an event satisfies the detection, as SQL on fields."""
        detection = Detection(self.name, fields, self._names, self._raw, self._missing_is_null)
        found = tuple(map(detection.tree, self._conditions))
        return found[0] if len(found) == 1 else Operation("or", found)


@attrs.frozen(eq=False)
class SigmaRules:
    """
    Sigma rules and correlations, as :func:`sigmaRules` reads them.

    Attributes
    ----------
    rules : dict of str to SigmaRule
        The rules that can run, by name.
    correlations : dict of str to Correlation
        The correlations, by name.
    refused : dict of str to CepError
        What was refused, by name, and why.
    """

    rules: Mapping[str, SigmaRule]
    correlations: Mapping[str, Correlation]
    refused: Mapping[str, CepError]
    _names: Mapping[str, Sequence[str]]  # By id, title or name the names of what has it

    def find(self, reference: str, where: str) -> SigmaRule | Correlation:
        """Return what a correlation names; raise why it was refused."""
        name = self._name(reference)
        if name in self.refused:
            raise self.refused[name]
        found = self.rules.get(name) or self.correlations.get(name)
        if found is None and len(several := self._names.get(reference, ())) > 1:
            raise InvalidArgumentError(
                f"{where}: {reference!r} is the title of several rules",
                f"write the name or id of the one that is meant: {', '.join(several)}",
            )
        if found is None:
            hint = did_you_mean(reference, self._names, "read its file with it")
            raise InvalidArgumentError(f"{where}: unknown rule {reference!r}", hint)
        return found

    def _name(self, reference: str) -> str:
        """Return the name of what a correlation names; a name goes before titles of others."""
        known = self._names.get(reference, ())
        return known[0] if len(known) == 1 and not self._has(reference) else reference

    def _has(self, name: str) -> bool:
        return any(name in own for own in (self.rules, self.correlations, self.refused))

    @property
    def alerting(self) -> Iterator[SigmaRule | Correlation]:
        """What alerts by itself: all but what a correlation without ``generate`` refers to."""
        silent = {
            self._name(rule)
            for one in self.correlations.values()
            if not one.generate
            for rule in one.rules
        }
        yield from (rule for name, rule in self.rules.items() if name not in silent)
        yield from (one for name, one in self.correlations.items() if name not in silent)

    def sql(self, columns: Mapping[str, str] | Iterable[str]) -> dict[str, str]:
        """
        Return the rules as Spark SQL on single events, for ``where`` of patterns and DataFrames.

        Parameters
        ----------
        columns : dict of str to str, or iterable of str
            The columns of the events and their types, such as ``dict(frame.dtypes)``; fields of a
            struct are known by their path. Names alone are those of texts.

        Raises
        ------
        CepError
            If a rule reads a column that is missing, unless `missing` is ``"null"``.

        Examples
        --------
        >>> rule = '''
        ... title: Shell
        ... name: shell
        ... logsource: {category: process_creation}
        ... detection:
        ...   selection: {Image|endswith: /sh, Arguments|contains: [' -c ', ' -i ']}
        ...   condition: selection
        ... '''
        >>> rules = sigmaRules([rule], logsources={"process_creation": "type = 'process'"})
        >>> print(rules.sql(["Image", "Arguments"])["shell"])
        (type = 'process') AND (endswith(lower(`Image`), '/sh') AND \
(contains(lower(`Arguments`), ' -c ') OR contains(lower(`Arguments`), ' -i ')))
        """
        fields = Fields(_columns(columns))
        return {name: _sql(rule, fields) for name, rule in self.rules.items()}


def _columns(columns: Mapping[str, str] | Iterable[str]) -> dict[str, FieldColumn | str]:
    typed = columns if isinstance(columns, Mapping) else dict.fromkeys(columns, "string")
    found: dict[str, FieldColumn | str] = {}
    for name, written in typed.items():
        for path, field in _fields(name, quoted_name(name), written):
            found.setdefault(path, field)
    return found


def _fields(path: str, sql: str, written: str) -> Iterator[tuple[str, FieldColumn | str]]:
    """Yield a column, or the fields of one that is a struct, given its type as Spark writes it."""
    if written.startswith("struct<"):
        for part in _parts(written[7:-1]):
            name, _, type_ = part.partition(":")
            yield from _fields(f"{path}.{name}", f"{sql}.{quoted_name(name)}", type_)
        return
    is_array = written.startswith("array<")
    known = cast_type(written[6:-1] if is_array else written)
    yield path, written if known is None else FieldColumn(Column(sql), known, is_array)


def _parts(written: str) -> Iterator[str]:
    """Yield what stands between commas that are in no brackets."""
    depth = begin = 0
    for at, char in enumerate(f"{written},"):
        depth += (char in "<(") - (char in ">)")
        if char == "," and not depth:
            yield written[begin:at]
            begin = at + 1


def _sql(rule: SigmaRule, fields: Fields) -> str:
    def leaf(part: Any) -> str:
        return f"{part.sql}"

    text = spark_sql(rule.tree(fields), leaf)
    return text if rule.where is None else f"({rule.where}) AND {text}"


# --- reading


@suggesting
def sigmaRules(
    source: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    logsources: Logsources,
    fields: Mapping[str, str] | None = None,
    missing: Literal["refuse", "null"] = "refuse",
    raw: Sequence[str] = (),
    pipeline: ProcessingPipeline | None = None,
) -> SigmaRules:
    """
    Return the rules and correlations of Sigma files; needs the extra ``[sigma]``.

    Parameters
    ----------
    source : path, or iterable of paths or texts
        Folders, of which all ``.yml`` and ``.yaml`` files are read, files, and YAML texts. Filters
        among them are applied to the rules.
    logsources : dict of str to str, or "ignore"
        What events of a log source are: for ``"category/product/service"``, of which ``*`` and what
        is left out may be anything, SQL on an event, ``"true"`` for all. Of several entries that
        fit, that with the most names counts. ``"ignore"`` runs all rules on all events, with a
        warning.
    fields : dict of str to str, optional
        Sigma's names of fields, and those of the events: columns, or fields in them as ``a.b``.
    missing : {"refuse", "null"}
        Whether a rule that reads a field that no event has is refused, or the field is null.
    raw : list of str
        The columns in which text without a field is looked for; without them such rules are
        refused.
    pipeline : sigma.processing.pipeline.ProcessingPipeline, optional
        Applied to each rule first, by pySigma.

    Returns
    -------
    SigmaRules
        The rules; for :func:`matchSigma`, or as SQL.

    Warns
    -----
    UserWarning
        If rules were refused, with how many and why the first was.

    Raises
    ------
    NotSupportedError
        If pySigma is not installed.
    InvalidArgumentError
        If an argument is of the wrong kind.

    Examples
    --------
    >>> rule = '''
    ... title: Shell
    ... name: shell
    ... logsource: {category: process_creation}
    ... detection:
    ...   selection: {Image|endswith: ['/sh', '/bash']}
    ...   condition: selection
    ... '''
    >>> sigmaRules([rule], logsources={"process_creation": "true"}).rules["shell"].title
    'Shell'
    """
    check_choice("missing", missing, ("refuse", "null"))
    if logsources != "ignore" and not _are_texts(logsources):
        raise InvalidArgumentError(
            f"logsources: expected a dict of texts, got {logsources!r:.40}",
            "write logsources={'process_creation/windows': \"type = 'process'\"}, or 'ignore'",
        )
    for name, is_right, wanted, hint in (
        ("source", isinstance(source, Iterable | os.PathLike), "paths or texts", "'rules/'"),
        ("fields", _are_texts(fields or {}), "a dict of texts", "{'Image': 'exe'}"),
        ("raw", isinstance(raw, tuple | list), "a list of columns", "['message']"),
        ("pipeline", pipeline is None or hasattr(pipeline, "apply"), "a pipeline of pySigma",
         "ProcessingPipeline(…)"),
    ):  # fmt: skip
        if not is_right:
            raise InvalidArgumentError(
                f"sigmaRules: expected {wanted} as {name}", f"write {name}={hint}"
            )
    reading = _Reading(logsources, dict(fields or {}), missing == "null", tuple(raw), pipeline)
    found = reading.read(_documents([source] if isinstance(source, str | os.PathLike) else source))
    if logsources == "ignore":
        Place.here().warn("all Sigma rules run on all events: logsources='ignore'", UserWarning)
    if found.refused:
        first = next(iter(found.refused.values()))
        Place.here().warn(
            f"{counted(len(found.refused), 'Sigma rule')} refused, see refused: {first.message}",
            UserWarning,
        )
    return found


def _are_texts(given: object) -> bool:
    return isinstance(given, Mapping) and all(
        isinstance(one, str) for pair in given.items() for one in pair
    )


def _documents(
    source: Iterable[str | os.PathLike[str]],
) -> Iterator[tuple[str, Mapping[str, Any] | Exception]]:
    """Yield where each YAML document is, and the document, or what is wrong with it."""
    try:
        import yaml
        from sigma.rule import SigmaRule as _  # noqa: F401
    except ImportError:
        raise NotSupportedError(
            "Sigma rules need pySigma", "pip install 'pyflinkcep[sigma]'"
        ) from None
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    for where, text in _texts(source):
        try:
            for document in yaml.load_all(text, loader):
                if document is not None:
                    yield where, document
        except yaml.YAMLError as cause:
            yield where, cause


def _texts(source: Iterable[str | os.PathLike[str]]) -> Iterator[tuple[str, str]]:
    for number, one in enumerate(source):
        if isinstance(one, str) and "\n" in one:
            yield f"rule {number + 1}", one
            continue
        if not isinstance(one, str | os.PathLike):
            raise InvalidArgumentError(
                f"sigmaRules: expected paths or texts as source, got {one!r:.80}",
                "write source=['rules/']",
            )
        path = Path(one)
        if path.is_dir():
            for file in sorted(path.rglob("*.y*ml")):
                yield str(file), file.read_text(encoding="utf-8")
        elif path.is_file():
            yield str(path), path.read_text(encoding="utf-8")
        else:
            raise InvalidArgumentError(
                f"no Sigma rules at {os.fspath(one)!r}", "pass a folder, a file, or YAML as text"
            )


@attrs.frozen
class _Reading:
    logsources: Logsources
    fields: dict[str, str]
    missing_is_null: bool
    raw: tuple[str, ...]
    pipeline: ProcessingPipeline | None

    def read(self, documents: Iterable[tuple[str, Any]]) -> SigmaRules:
        """Read rules, correlations and filters; what is refused is kept beside them."""
        rules: dict[str, SigmaRule] = {}
        correlations: dict[str, Correlation] = {}
        refused: dict[str, CepError] = {}
        names: dict[str, list[str]] = {}
        every = list(documents)
        filters = list(self._filters(every, refused))
        for where, document in every:
            if not isinstance(document, Mapping):
                refused[_free(where, refused)] = InvalidArgumentError(
                    f"{where}: expected a rule, got {f'{document}':.80}", "write a mapping"
                )
                continue
            if "filter" in document:
                continue
            name = name_of(document, where)
            is_taken = name in rules or name in correlations or name in refused
            own = _free(f"{name} in {where}", refused) if is_taken else name
            given = (f"{document[part]}" for part in _NAMED if document.get(part))
            for reference in dict.fromkeys(given):
                names.setdefault(reference, []).append(own)
            if is_taken:
                refused[own] = InvalidArgumentError(
                    f"{where}: there is another rule {name!r}", "give each rule a name of its own"
                )
                continue
            try:
                if "correlation" in document:
                    correlations[name] = read_correlation(document, name)
                else:
                    rules[name] = self._rule(document, name, filters)
            except CepError as cause:
                refused[name] = cause
        return SigmaRules(rules, correlations, refused, names)

    def _filters(
        self, documents: Iterable[tuple[str, Any]], refused: dict[str, CepError]
    ) -> Iterator[SigmaFilter]:
        from sigma.exceptions import SigmaError
        from sigma.filters import SigmaFilter

        for where, document in documents:
            if isinstance(document, Mapping) and "filter" in document:
                try:
                    yield SigmaFilter.from_dict(dict(document))
                except SigmaError as cause:
                    name = f"the filter {name_of(document, where)}"
                    refused[_free(name, refused)] = _of_sigma(name, cause)

    def _rule(
        self, document: Mapping[str, Any], name: str, filters: Sequence[SigmaFilter]
    ) -> SigmaRule:
        from sigma.exceptions import SigmaError
        from sigma.rule import SigmaRule as Parsed

        try:
            parsed: Any = Parsed.from_dict(dict(document))
            for one in filters:
                parsed = one.apply_on_rule(parsed)
            if self.pipeline is not None:
                self.pipeline.apply(parsed)
            conditions = [condition.parsed for condition in parsed.detection.parsed_condition]
        except SigmaError as cause:
            raise _of_sigma(name, cause) from cause
        if not conditions or None in conditions:
            raise InvalidArgumentError(f"{name}: its condition is empty", "write condition: …")
        source = _logsource(parsed)
        return SigmaRule(
            name,
            f"{parsed.title}",
            None if parsed.level is None else parsed.level.name.lower(),
            source,
            self._where(name, source),
            conditions,
            self.fields,
            self.raw,
            self.missing_is_null,
        )

    def _where(self, name: str, source: LogSource) -> str | None:
        """Return the SQL for the events of a log source; None for all events."""
        if not isinstance(self.logsources, Mapping):
            return None
        fitting = [key for key in self.logsources if _fits(key, source)]
        if not fitting:
            written = "/".join(part or "*" for part in source).removesuffix("/*").removesuffix("/*")
            raise InvalidArgumentError(
                f"{name}: its log source {written} is not in logsources",
                f"add its events: logsources={{{written!r}: \"type = '…'\"}}",
            )
        best = max(fitting, key=lambda key: sum(part not in ("", "*") for part in key.split("/")))
        sql = self.logsources[best].strip()
        return None if sql.lower() == "true" else sql


def _fits(key: str, source: LogSource) -> bool:
    wanted = [*key.split("/"), "*", "*"][:3]
    return all(part in ("", "*") or part == own for part, own in zip(wanted, source, strict=True))


def _logsource(parsed: ParsedRule) -> LogSource:
    own = parsed.logsource
    return own.category, own.product, own.service


_NAMED = ("name", "id", "title")
"""What correlations may name a rule by."""


def _free(name: str, taken: Container[str]) -> str:
    """Return a name that nothing else has."""
    numbers = itertools.count(2)
    found = name
    while found in taken:
        found = f"{name} ({next(numbers)})"
    return found


def _of_sigma(name: str, cause: Exception) -> CepError:
    hint = "see the specification of Sigma"
    if "pipe syntax" in f"{cause}":
        hint = "write a correlation, such as event_count, in place of | count() and near"
    return InvalidArgumentError(f"{name}: {cause}", hint)
