# SPDX-License-Identifier: Apache-2.0
"""Java of the tests, and its translations."""

from __future__ import annotations

from typing import Any

from pyflinkcep.migrate.functions.translator import Translator
from pyflinkcep.migrate.java.project import Project
from pyflinkcep.migrate.java.source import parse_java
from pyflinkcep.migrate.meaning.translated import Translated

CLASSES = """
import java.util.*;
abstract class Reading {
  protected long time; protected String room;
  public long getTime() { return time; } public String getRoom() { return room; }
  public abstract String unit();
}
class Heat extends Reading {
  private double degrees; private int count; private Integer level; private Kind kind;
  private Place place; private boolean open; private Map<String, String> tags;
  public double getDegrees() { return degrees; } public int getCount() { return count; }
  public Integer getLevel() { return level; } public Kind getKind() { return kind; }
  public Place getPlace() { return place; } public boolean isOpen() { return open; }
  public Map<String, String> getTags() { return tags; }
  public String unit() { return "C"; }
  public boolean isHot() { return degrees > Limits.HOT; }
  public boolean hotterThan(Heat other) { return degrees > other.degrees; }
}
class Power extends Reading { double watts; public String unit() { return "W"; } }
class Limits { static final double HOT = 30 + 10; static final List<String> ROOMS = List.of("a", "b");
  static boolean inRoom(Heat h, String room) { return h.getRoom() != null && h.getRoom().equals(room); }
  static int dots(String s) { int n = 0; for (int i = 0; i < s.length(); i++) { if (s.charAt(i) == '.') n++; } return n; } }
enum Kind { RED("r"), BLUE("b"); private final String code; Kind(String c) { code = c; } String getCode() { return code; } }
@lombok.Data class Place { private String city; private Integer floor; }
@lombok.Data @lombok.Builder class Alert { private String user; private int count; }
record Sum(String room, double total) {}
class Above extends SimpleCondition<Heat> {
  private final double limit; Above(double limit) { this.limit = limit; }
  @Override public boolean filter(Heat h) { return h.getDegrees() > limit; }
}
"""


def _translated(java: str) -> tuple[Any, Any, Project]:
    source = parse_java(CLASSES + f"class Job {{ Object it = {java}; }}", "Job.java")
    assert source.errors == []
    project = Project([source])
    declared = project.find("Job")
    assert declared is not None
    return declared.fields["it"].value, source, project


def condition(java: str, known: Any = None, **options: Any) -> Translated:
    """Translate a condition on events of the class Heat."""
    return Translator(*_translated(java), "Heat", known or {}).condition(**options)


def function(java: str, kind: str = "select") -> Translated:
    """Translate a function of matches of events of the class Heat."""
    return Translator(*_translated(java), "Heat").function(kind)


def defined(found: Translated) -> Any:
    """Return the function or class that a translation defines."""
    names: dict[str, Any] = {}
    exec("\n".join([*sorted(found.imports), found.python or ""]), names)
    return names[str(found.name)]
