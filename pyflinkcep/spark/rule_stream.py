# SPDX-License-Identifier: Apache-2.0
"""Many rules on a DataFrame: the output of matches."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pyflinkcep.functions import OutputTag, check_tag
from pyflinkcep.matching.results import MATCH_TIME
from pyflinkcep.rules.rule import Rule
from pyflinkcep.rules.rule_log import RuleLog
from pyflinkcep.spark.cep_dataframe import CepDataFrame, Result, changed
from pyflinkcep.spark.plan.rules.job import RulesJob
from pyflinkcep.spark.plan.rules.live_job import LiveJob
from pyflinkcep.spark.plan.settings import JobSettings
from pyflinkcep.spark.results import stream_result
from pyflinkcep.spark.worker.consumers import MAIN


@attrs.frozen(eq=False, kw_only=True, repr=False)
class RuleStream:
    """
    Rules applied to a DataFrame; made by :meth:`pyflinkcep.CEP.patterns`.

    Examples
    --------
    With `events` as in :func:`pyflinkcep.keyBy`; the examples of the methods go on from here:

    >>> from pyflinkcep.rules import Rule
    >>> passed = Pattern.begin("fail").where("result = 'fail'").next("ok").where("result = 'ok'")
    >>> rules = {
    ...     "passed": Rule("passed", passed, ("user",)),
    ...     "guessed": Eql("sequence by user [fail where true] [ok where true]"),
    ... }
    >>> alerts = CEP.patterns(events, rules, timestamp="ts", type="result")
    """

    _dataframe: DataFrame
    _rules: Sequence[Rule]
    _time_column: str | None
    _type: str
    _settings: JobSettings

    def toDF(self) -> CepDataFrame:
        """
        Return each match as a row.

        Returns
        -------
        CepDataFrame
            ``rule`` and ``version``; ``key``, a map of texts, moments in UTC; ``matchId``, as in
            :class:`~pyflinkcep.rules.RuleMatch`; ``matchTimestamp``; and ``events``, a map of
            stages, variables or numbers of steps to arrays of structs of the events' columns. Rows
            are in no particular order.

        Raises
        ------
        InputError
            If the events lack what a rule names.
        NotSupportedError
            If a rule makes no matches of events, or has ``head`` or ``tail`` of a stream.

        Examples
        --------
        >>> rows = alerts.toDF().orderBy("rule")
        >>> rows.selectExpr("rule", "key", "events['ok'].ts AS ok", "events['2'].ts AS `2`").show()
        +-------+-------------+------+------+
        |   rule|          key|    ok|     2|
        +-------+-------------+------+------+
        |guessed|{user -> ann}|  NULL|[2000]|
        | passed|{user -> ann}|[2000]|  NULL|
        +-------+-------------+------+------+
        """
        job = RulesJob.analyse(
            self._rules, self._dataframe, self._time_column, self._type, self._settings
        )
        if job.job.is_stream:
            return stream_result(job.stream(), {MAIN: job.schema}, MATCH_TIME)
        return CepDataFrame(Result.of(job.run(), job.job.name))

    def toLong(self) -> CepDataFrame:
        """
        Return each event of each match as a row.

        Returns
        -------
        CepDataFrame
            The columns of :meth:`toDF`; in place of ``events``, ``stage``, ``position``, the
            event's place among those of its stage from 0, and ``event``, a struct.

        Examples
        --------
        >>> alerts.toLong().where("rule = 'passed'").select("stage", "position", "event.ts").show()
        +-----+--------+----+
        |stage|position|  ts|
        +-----+--------+----+
        | fail|       0|1000|
        |   ok|       0|2000|
        +-----+--------+----+
        """

        def rows(matches: DataFrame) -> DataFrame:
            own = ["rule", "version", "key", "matchId", MATCH_TIME]
            stages = matches.select(*own, F.explode("events").alias("stage", "events"))
            return stages.select(*own, "stage", F.posexplode("events").alias("position", "event"))

        return changed(self.toDF(), rows)


@attrs.frozen(eq=False, kw_only=True, repr=False)
class DynamicRuleStream:
    """Rules of a log applied to a stream; made by :meth:`pyflinkcep.CEP.dynamicPatterns`."""

    _dataframe: DataFrame
    _log: RuleLog
    _keys: Sequence[str] | None
    _time_column: str | None
    _type: str
    _settings: JobSettings

    def toDF(self, statusTag: OutputTag | None = None) -> CepDataFrame:
        """
        Return each match as a row.

        Parameters
        ----------
        statusTag : OutputTag, optional
            The tag of the side output that tells what became of each change of a rule:
            ``publication``, its number; ``rule``, ``version`` and ``change``; ``problem``, null if
            it is in force, and ``hint``. One run has it and matches: see
            :meth:`~pyflinkcep.CepDataFrame.tagged`.

        Returns
        -------
        CepDataFrame
            The columns of :meth:`RuleStream.toDF`.

        Raises
        ------
        NotSupportedError
            If the DataFrame is no stream.

        Examples
        --------
        >>> from tempfile import mkdtemp
        >>> from pyflinkcep.rules import Rule, RuleLog
        >>> log = RuleLog(mkdtemp())
        >>> log.publish([Rule("fail", Pattern.begin("a").where("result = 'fail'"), ("user",))])
        1
        >>> changing = CEP.dynamicPatterns(stream, log, "ts", "result")
        >>> changing.toDF(statusTag=OutputTag("status")).outputs
        ['main', 'status']
        """
        if statusTag is not None:
            check_tag(statusTag)
        job = LiveJob.analyse(
            self._dataframe, self._log, self._keys, self._time_column, self._type, self._settings
        )
        told = None if statusTag is None else statusTag.name
        return stream_result(job.stream(told), job.schemas(told))
