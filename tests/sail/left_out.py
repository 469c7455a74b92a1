# SPDX-License-Identifier: Apache-2.0
"""The tests on Spark that say nothing about Sail, each with the reason."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

_STREAM = "streams are refused on Sail"
_JVM = "about Spark's JVM: its plans, jobs, pages, workers or accumulators"
_ORDER = "compares the order of rows in the result, which Sail does not keep"
_TEXT = "compares with the words of Spark's own errors"
_MISSING = "uses what Sail does not have: "
_ZONE = "reads local times of a zone, which is refused"
_VALUES = "compares with functions of the engine's own, which on Sail differ from Spark's"

_GUARDS = "Sail computes what CASE guards for all rows, and fails where that has no value"

_LEFT_OUT = {
    "test_match_expressions.py::test_conditions_of_a_stage_guard_each_other": _GUARDS,
    "test_sql.py::test_measures_are_computed_for_the_rows_of_their_variable": _GUARDS,
    "test_expression_targets.py::test_decimals_have_sparks_values_and_digits": _VALUES,
    "test_expression_targets.py::test_numbers_are_truncated": f"{_MISSING}trunc() of doubles",
    "test_query_aggregates.py": _VALUES,
    "test_limit.py::test_null_keys_of_queries_and_clauses": _STREAM,
    "test_limit.py::test_events_of_a_query_without_time": _STREAM,
    "test_match_windows.py::test_keys_that_are_equal_to_spark": _STREAM,
    "test_query_limits.py::test_columns_that_cannot_be": f"{_MISSING}collations",
    "test_stream": _STREAM,
    "test_eql": "EQL is refused on Sail",
    "test_sigma": "CEP.sigma is refused on Sail",
    "test_dynamic_rules.py::test_versions_see": _STREAM,
    "test_dynamic_rules.py::test_events_stay_behind": _STREAM,
    "test_rules.py::test_events_that_are_refused": _STREAM,
    "test_rules.py::test_the_matches_of_memory": f"{_MISSING}functions that ask each element",
    "test_rules.py::test_groups_of_correlations": _JVM,
    "test_sql.py::test_averages_of_wide_decimals": "such averages are refused on Sail",
    "test_latest.py::test_refusals": _STREAM,
    "test_latest.py::test_a_stream": _STREAM,
    "test_flush": _STREAM,
    "test_handed_on": _STREAM,
    "test_explain.py::test_streams": _STREAM,
    "test_explain.py::test_what_streams_drop_and_why_not": _STREAM,
    "test_limit.py::test_a_stream": _STREAM,
    "test_many_conditions.py::test_stream": _STREAM,
    "test_event_filter.py::test_time_that_is_shown": _STREAM,
    "test_funnel.py::test_what_cannot_be_counted": _STREAM,
    "test_funnel.py::test_a_stream": _STREAM,
    "test_match_windows.py::test_windows_of_streams": _STREAM,
    "test_match_expressions.py::test_streams": _STREAM,
    "test_ported_jobs.py::test_long_rides": _STREAM,
    "test_suppression.py::test_a_stream": _STREAM,
    "test_ported_jobs.py::test_absence_of_a_top_up": _STREAM,
    "test_warnings.py::test_a_pattern_on_micro_batches": _STREAM,
    "test_warnings.py::test_epoch_seconds": _JVM,
    "test_workers_python": _JVM,
    "test_docstring_examples.py::test_examples": _STREAM,
    "test_chains.py::test_the_same_rows": "reads rows twice that repartition deals out at random",
    "test_batch_keys.py::test_numbers_of_keys": _JVM,
    "test_batch_order.py::test_one_key_with_half_a_million": _JVM,
    "test_benchmark": _JVM,
    "spark/test_file_reader": _JVM,
    "test_batch_order.py::test_partitions_that_are_sorted_on_disk": _JVM,
    "test_cep_dataframe.py::test_persist_runs_once": _JVM,
    "test_cep_dataframe.py::test_the_result_behaves_as_its_dataframe": _JVM,
    "test_cep_dataframe.py::test_the_result_is_a_dataframe": _JVM,
    "test_cep_dataframe.py::test_jobs_carry_the_pattern": _JVM,
    "test_cep_dataframe.py::test_the_plan": _JVM,
    "test_cep_dataframe.py::test_on_spark_connect": _JVM,
    "test_event_filter.py::test_the_filter": _JVM,
    "test_event_filter.py::test_a_random_condition_is_asked_once": _JVM,
    "test_event_filter.py::test_events_that_no_stage_takes_travel_bare": _JVM,
    "test_job.py::test_a_job_is_analysed_once": _STREAM,
    "test_batch_conformance.py::test_recorded_cases_of_many_keys": _ORDER,
    "test_batch_outputs.py::test_functions_of_every_kind": _ORDER,
    "test_batch_refusals.py::test_refused_before_the_job": _TEXT,
    "test_batch_refusals.py::test_wrong_arguments[schema of nothing]": _TEXT,
    "test_sql.py::test_conditions_that_nothing_computes": _TEXT,
    "test_sql.py::test_measures_that_spark_refuses": _TEXT,
    "test_batch_keys.py::test_keys_of_every_type": f"{_MISSING}keys that are intervals",
    "test_batch_keys.py::test_equal_keys_are_one": f"{_MISSING}hashes of columns and literals",
    "test_batch_keys.py::test_events_that_are_already_partitioned": f"{_MISSING}partitions that stay",
    "test_batch_keys.py::test_keys_with_a_collation": f"{_MISSING}collations",
    "[collated string of a stage]": f"{_MISSING}collations",
    "test_why_not.py::test_what_cannot_be_asked": _STREAM,
    "test_sql.py::test_any_aggregate": f"{_MISSING}subqueries of expressions",
    "test_sql.py::test_views_of_matches": f"{_MISSING}CACHE TABLE",
    "test_evaluator_cases": "test_values.py asks Sail about the same cases",
    "test_expression_targets.py::test_every": _VALUES,
    "test_match_expression_values.py::test_values_follow": _VALUES,
    "test_match_expression_values.py::test_days_are": _ZONE,
    "test_query_limits.py::test_literal_times": _ZONE,
    "test_match_expression_values.py::test_literal_times_in_three": _ZONE,
}
"""Why a test is left out, by a part of its id."""


def leave_out(items: Iterable[pytest.Item]) -> None:
    """Skip the tests that say nothing about Sail."""
    for item in items:
        reasons = [reason for part, reason in _LEFT_OUT.items() if part in item.nodeid]
        if reasons:
            item.add_marker(pytest.mark.skip(reason=reasons[0]))
