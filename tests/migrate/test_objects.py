# SPDX-License-Identifier: Apache-2.0
"""Objects, constants and settings that patterns and jobs are made of."""

import pytest

from pyflinkcep.migrate.check.compare import load
from pyflinkcep.migrate.migration import migrate
from pyflinkcep.testing import match

LIMITS = """
package acme;
public interface Limits { int TRIES = 2; double SMALL = 1.5; }
"""
LIFTS = """
package lifts;
import static acme.Limits.*;
import java.util.concurrent.TimeUnit;
public class Lifts {
    public static class Lift { public long id; public int floor; public long at; }
    static class Sentinel {
        private final Pattern<Lift, ?> pattern;
        private final int least;
        Sentinel(int floors, int least) {
            this.least = least;
            Pattern<Lift, Lift> p = Pattern.<Lift>begin("stuck").where(SimpleCondition.of(e -> stuck(e))).times(TRIES);
            for (int i = 1; i <= floors; i++) {
                final int wanted = i;
                p = p.followedBy("move " + i).where(SimpleCondition.of(e -> e.floor == wanted));
            }
            pattern = p;
        }
        private boolean stuck(Lift e) { return e.floor > least; }
        DataStream<String> attach(DataStream<Lift> lifts) {
            return CEP.pattern(lifts.keyBy(e -> e.id), pattern).select(m -> "x");
        }
    }
    Pattern<Lift, ?> slow() {
        long limit = TimeUnit.SECONDS.toMillis(45);
        return Pattern.<Lift>begin("a").where(SimpleCondition.of(e -> e.at > limit && e.floor < SMALL));
    }
    public static void main(String[] args) throws Exception {
        new Sentinel(2, 5).attach(env.addSource(new Own())).print();
    }
}
"""


def translated(tmp_path, **files):
    """Return the report of some files, which is for the last one."""
    for name, text in files.items():
        (tmp_path / f"{name}.java").write_text(text, encoding="utf-8")
    return migrate([str(tmp_path)]).report


def test_a_constructor_builds_a_pattern(tmp_path):
    """A constructor is followed with its arguments: its loop, its fields, methods that read them."""
    report = translated(tmp_path, Limits=LIMITS, Lifts=LIFTS)
    module = load(report.files[0])
    rows = [{"id": 1, "floor": floor, "at": n} for n, floor in enumerate([6, 5, 9, 1, 2])]
    found = match(module.p_pattern(), rows)

    assert [sorted(one) for one in found] == [["move 1", "move 2", "stuck"]]
    assert [e.floor for e in found[0]["stuck"]] == [6, 9]


def test_a_pattern_of_unknown_arguments_has_parameters(tmp_path):
    """What a constructor is given elsewhere becomes a parameter; a loop stays a loop."""
    alone = LIFTS.replace("new Sentinel(2, 5).attach(env.addSource(new Own())).print();", "")
    report = translated(tmp_path, Limits=LIMITS, Lifts=alone)
    module = load(report.files[0])
    rows = [{"id": 1, "floor": floor, "at": n} for n, floor in enumerate([6, 9, 1])]

    assert "for i in range(1, floors + 1):" in report.files[0].text
    assert len(match(module.p_pattern(floors=1, least=5), rows)) == 1


def test_constants_of_interfaces_and_units(tmp_path):
    """Constants that an import of all brings, and amounts in units of time, are known."""
    text = translated(tmp_path, Limits=LIMITS, Lifts=LIFTS).files[0].text

    assert ".times(2)" in text
    assert "at > 45000 AND floor < 1.5D" in text


JOB = """
class Job {{
    static class Event {{ public String user; public long n; }}
    public static void main(String[] args) throws Exception {{
        CEP.pattern({source}.keyBy({key}), Pattern.<{kind}>begin("a").where(SimpleCondition.of(e -> {test})))
            .select(m -> "x").print();
    }}
}}
"""


def job(tmp_path, source="env.addSource(new Own())", key="e -> e.user", kind="Event", test="true"):
    """Return a job and its report."""
    java = JOB.format(source=source, key=key, kind=kind, test=test)
    report = translated(tmp_path, Job=java)
    return report.files[0].text, report


def test_the_key_of_a_tuple(tmp_path):
    """A key given as a number is that field of a tuple."""
    text, _ = job(tmp_path, key="1", kind="Tuple2<Long, String>", test='e.f1.equals("x")')

    assert 'keyBy(events, "f1")' in text


@pytest.mark.parametrize(
    ("source", "option"),
    [
        ("env.readTextFile(url.getPath()).map(new Parsed())", "path"),
        ("env.socketTextStream(hosts[0], 9).map(new Parsed())", "host"),
    ],
)
def test_settings_that_are_not_shown(tmp_path, source, option):
    """A path or host that the code does not show is marked, and in the report."""
    text, report = job(tmp_path, source=source)

    assert '"TODO"' in text
    assert f"the code does not show: {option}" in report.as_text()
    assert report.status == 1


@pytest.mark.parametrize(
    ("test", "held"),
    [
        ('e.path("n").asInt() == 0', [None, 0]),
        ('!e.path("user").asText().equals("ann")', [None, "bob"]),
        ('e.path("user").asText("none").length() == 4', [None]),
        ('e.get("n").asLong(7L) > 5', [None, 6]),
    ],
)
def test_missing_fields_of_json(tmp_path, test, held):
    """A field that is missing is empty text, zero or the value given, as Jackson says."""
    name = "n" if '"n"' in test else "user"
    _, report = job(tmp_path, kind="JsonNode", test=test)
    make = getattr(load(report.files[0]), report.files[0].patterns[0])
    values = [None, 0, 6] if name == "n" else [None, "ann", "bob"]
    found = match(make(), [{name: value, "k": n} for n, value in enumerate(values)])

    assert [one["a"][0][name] for one in found] == held


def test_boxes_made_of_text(tmp_path):
    """``new Long(text)``, as before Java 9, reads the number."""
    text, _ = job(tmp_path, test='e.n > new Long(e.user) && new Integer("3") < e.n')

    assert "not_translated" not in text


def test_a_window_of_a_parameter(tmp_path):
    """A duration that is made of a parameter is written with its import."""
    java = """
class Job {
    static class Event { public int n; }
    static Pattern<Event, ?> slow(int hours) {
        return Pattern.<Event>begin("a").where(SimpleCondition.of(e -> e.n > 1)).within(Time.hours(hours));
    }
}
"""
    module = load(translated(tmp_path, Job=java).files[0])

    assert module.slow_pattern(2).getWindowSize() is not None
