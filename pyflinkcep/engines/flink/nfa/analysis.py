# SPDX-License-Identifier: Apache-2.0
"""What a compiled pattern tells beforehand: which events change nothing, and what may grow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from itertools import combinations, islice, product

import attrs

from pyflinkcep.engines.flink.nfa.atoms import Atom
from pyflinkcep.engines.flink.nfa.nfa import NFA
from pyflinkcep.engines.flink.nfa.state import (
    Ask,
    EventEnd,
    Move,
    State,
    StateTable,
    StateTransition,
    StateTransitionAction,
    StateType,
    Step,
    reached,
)
from pyflinkcep.errors import MalformedPatternException
from pyflinkcep.time import duration_text

Answers = dict[Atom, bool]


def outcomes(
    tables: Sequence[StateTable], known: Answers | None = None
) -> Iterator[tuple[list[Step], Answers]]:
    """
    Yield the steps of states whose partial matches took the same events, for all answers.

    Those that are known are not asked for. There may be 2ⁿ of them for n conditions.

    >>> from pyflinkcep import Pattern
    >>> from pyflinkcep.engines.flink.nfa import NFACompiler
    >>> nfa = NFACompiler.compile(Pattern.begin("a").where("x = 1").next("b"))
    >>> [(list(answers.values()), step.takes) for [step], answers in outcomes([nfa.start])]
    [([False], False), ([True], True)]
    """
    open_ = [known or {}]
    while open_:
        answers = open_.pop()
        nodes: list[Step] = []
        for table in tables:
            node = table.first()
            while isinstance(node, Ask) and node.atom in answers:
                node = node.following(answers[node.atom])
            if isinstance(node, Ask):
                open_ += [{**answers, node.atom: holds} for holds in (True, False)]
                break
            nodes.append(node)
        else:
            yield nodes, answers


_MOST_CONDITIONS = 8
_MOST_STEPS = 10_000


def _known_steps(
    nfa: NFA, known: int, most: int
) -> list[tuple[StateTable, tuple[int, int], Step]] | None:
    """
    Return the steps of all states, with the known conditions asked before and those that held.

    None if there are more than `most`, or the pattern is malformed.
    """
    found = ((table, *one) for table in nfa.tables.values() for one in outcomes([table]))
    try:
        few = list(islice(found, most + 1))
    except MalformedPatternException:
        return None
    if len(few) > most:
        return None
    return [
        (
            table,
            (
                sum(atom.bit & known for atom in answers),
                sum(atom.bit & known for atom, holds in answers.items() if holds),
            ),
            step,
        )
        for table, [step], answers in few
    ]


def untaken_events(nfa: NFA, known: int) -> frozenset[int]:
    """
    Return the events that no stage takes, in whatever state a key is.

    They may still matter: after ``next``, any event ends a partial match.

    >>> from pyflinkcep import Pattern
    >>> from pyflinkcep.engines.flink.nfa import NFACompiler
    >>> pattern = Pattern.begin("a").where("x = 1").next("b").where("x = 2")
    >>> sorted(untaken_events(NFACompiler.compile(pattern), known=3))
    [0]
    """
    atoms = [atom for atom in nfa.atoms if atom.bit & known]
    few = 0 < len(atoms) <= _MOST_CONDITIONS
    steps = _known_steps(nfa, known, _MOST_STEPS) if few else None
    if steps is None:
        return frozenset()
    ways = {bits for _, bits, step in steps if step.takes}
    return frozenset(
        event for event in _events(atoms) if all(event & asked != held for asked, held in ways)
    )


def _events(atoms: list[Atom]) -> Iterator[int]:
    for chosen in range(1 << len(atoms)):
        yield sum(atom.bit for place, atom in enumerate(atoms) if chosen >> place & 1)


_MOST_STAGES = 60
_MOST_STEPS_OF_NEEDS = 250

Steps = dict[StateTable, list[Step]]


@attrs.frozen
class KeyNeeds:
    """
    The stages that every match has, and the events that they take.

    >>> from pyflinkcep import Pattern
    >>> from pyflinkcep.engines.flink.nfa import NFACompiler
    >>> pattern = Pattern.begin("a").where("x = 1").followedBy("b").where("x = 2").optional()
    >>> needs = KeyNeeds.of(NFACompiler.compile(pattern.followedBy("c").where("x = 3")), known=7)
    >>> needs.every, [needs.taken(bits) for bits in (0, 1, 2, 4)]
    (10, [0, 2, 4, 8])
    """

    # The stages that every match has, a bit for each in the order of :attr:`NFA.stages`.
    every: int
    # The ways to take an event: bits of the conditions asked, of those that held, and of the stages
    # that then take it, whatever came before.
    ways: tuple[tuple[int, int, int], ...]

    @classmethod
    def of(cls, nfa: NFA, known: int) -> KeyNeeds | None:
        """Decide about a pattern."""
        if not all(atom.bit & known for atom in nfa.atoms) or len(nfa.stages) > _MOST_STAGES:
            return None
        few = _known_steps(nfa, known, _MOST_STEPS_OF_NEEDS)
        if few is None:
            return None
        steps: Steps = {table: [] for table in nfa.tables.values()}
        numbers = {stage: 1 << number for number, stage in enumerate(nfa.stages)}
        taken: dict[tuple[int, int], int] = {}
        for table, bits, step in few:
            steps[table].append(step)
            for move in step.moves:
                if move.takes:
                    taken[bits] = taken.get(bits, 0) | numbers[move.stage]
        every = sum(bit for stage, bit in numbers.items() if not _ends_without(nfa, steps, stage))
        return cls(every, tuple((*bits, stages) for bits, stages in taken.items()))

    def taken(self, bits: int) -> int:
        """Return the stages that may take an event, given the conditions that hold for it."""
        found = 0
        for asked, held, stages in self.ways:
            if bits & asked == held:
                found |= stages
        return found


def _ends_without(nfa: NFA, steps: Steps, stage: str) -> bool:
    """Whether a match can come to its end without an event for a stage."""
    reached = [nfa.start]
    for table in reached:
        if table.is_pending:  # the passing of time completes it
            return True
        for step in steps[table]:
            for move in step.moves:
                if move.takes and move.stage == stage:
                    continue
                if move.completes:
                    return True
                if move.continues and move.target not in reached:
                    reached.append(move.target)
    return False


_MOST_LEAVES = 5_000
_MOST_PARTS = 64

NormalForms = Mapping[StateTable, tuple[StateTable, ...]]
"""What each state has become after any number of dropped events."""


@attrs.frozen
class Relevance:
    """
    What may be dropped before matching, or why nothing may.

    An event that no stage takes still changes a key: it moves a loop or an optional stage into its
    ignore twin and also into the stage that follows. So states are compared by their *normal form*,
    the states that repeated occurrences of the event lead to. Events are droppable if every state,
    and what it becomes, do the same with every possible event: the same matches and takes in the
    same order, and afterwards states of the same normal form. Then a key with such events and one
    without them stay equivalent forever. Time is observable too: an event ends windows that are
    over. That matters if the time of a result, or a skip strategy's choice, depends on when a
    window is found to have ended.

    >>> from pyflinkcep import Pattern
    >>> from pyflinkcep.engines.flink.nfa import NFACompiler
    >>> def droppable(pattern):
    ...     return Relevance.of(NFACompiler.compile(pattern), known=3, shows_next=True)
    >>> a = Pattern.begin("a").where("type = 0")
    >>> droppable(a.followedBy("b").where("type = 1"))
    Relevance(droppable=frozenset({0}), reason='')
    >>> droppable(Pattern.begin("a").where("x").next("b").where("y")).reason
    "stage 'b' must follow directly: any event in between ends the partial match"
    """

    # Events that may be dropped, as bits of the conditions known beforehand.
    droppable: frozenset[int]
    reason: str = ""  # Why there are none; empty if there are any

    @classmethod
    def of(cls, nfa: NFA, known: int, shows_next: bool) -> Relevance:
        """Decide about a pattern."""
        reason = "no condition is evaluated before Python: write some as SQL or Columns"
        reason = _time_matters(nfa, shows_next) if known else reason
        if reason:
            return cls(frozenset(), reason)
        try:
            return cls(_Analysis(nfa, known).droppable())
        except _Needed as needed:
            return cls(frozenset(), str(needed))
        except MalformedPatternException as error:
            return cls(frozenset(), error.message)


class _Needed(Exception):
    """Events are needed; the message says why."""


def _time_matters(nfa: NFA, shows_next: bool) -> str:
    """Return why it matters when the passing of time is noticed; empty if it does not."""
    if nfa.window_times:
        stage = nfa.tables[next(iter(nfa.window_times))].state.stage
        return f"stage {stage!r} has a window since the previous event, which any event may end"
    pending = next((t.state.stage for t in nfa.tables.values() if t.is_pending), "")
    if pending and shows_next:
        return (
            f"a match that ends with notFollowedBy({pending!r}) carries the time of the key's "
            "next event, whatever that is, in process()"
        )
    if nfa.window_time <= 0 or not nfa.skip_strategy.isSkipStrategy():
        return ""
    what = "a match that the skip strategy held back until a window was over"
    if shows_next:
        return f"{what} carries the time of the key's next event in process()"
    if nfa.handle_timeout or pending:
        return f"{what} decides what is skipped, and any event may end a window"
    return ""


class _Analysis:
    """The work of :meth:`Relevance.of` on one pattern."""

    def __init__(self, nfa: NFA, known: int) -> None:
        self._nfa = nfa
        self._known = known
        self._atoms = [atom for atom in nfa.atoms if atom.bit & known]
        self._leaves = 0
        self._states = self._reachable()

    def droppable(self) -> frozenset[int]:
        """Return the largest droppable set of events; raise :class:`_Needed` if there is none."""
        best: frozenset[int] = frozenset()
        tried: list[NormalForms] = []
        reason: _Needed | None = None
        for vector in self._vectors():
            if vector in best:
                continue
            try:
                forms = self._normal_forms(vector)
                if forms not in tried:
                    tried.append(forms)
                    self._check(forms)
                    group = frozenset(v for v in self._vectors() if self._fits(v, forms))
                    best = max(best, group, key=lambda found: (len(found), 0 in found))
            except _Needed as needed:
                reason = reason or needed
        if not best and reason is not None:
            raise reason
        return best

    def _vectors(self) -> Iterator[int]:
        """Return the events to decide, beginning with those that satisfy no condition."""
        return _events(self._atoms if len(self._atoms) <= _MOST_CONDITIONS else [])

    # --- steps

    def _steps(
        self, tables: Sequence[StateTable], known: Answers | None = None
    ) -> Iterator[tuple[list[Step], Answers]]:
        """Yield the steps of states, as :func:`outcomes` does; give up if there are very many."""
        for found in outcomes(tables, known):
            self._leaves += 1
            if self._leaves > _MOST_LEAVES:
                raise _Needed("the pattern has too many conditions to try their combinations")
            yield found

    def _reachable(self) -> list[StateTable]:
        reached = [self._nfa.start]
        for table in reached:
            for (step,), _ in self._steps([table]):
                targets = [move.target for move in step.moves if move.continues]
                reached += dict.fromkeys(t for t in targets if t not in reached)
        return reached

    def _passed(self, table: StateTable, vector: int) -> Iterator[tuple[StateTable, ...]]:
        """Return the states after an event, one result for each combination of unknown answers."""
        answers = {atom: vector & atom.bit != 0 for atom in self._atoms}
        for (step,), asked in self._steps([table], answers):
            if not step.moves or any(move.takes or move.completes for move in step.moves):
                raise _Needed(self._why(table, step, asked))
            yield tuple(move.target for move in step.moves)

    # --- normal forms

    def _normal_forms(self, vector: int) -> NormalForms:
        after: dict[StateTable, tuple[StateTable, ...]] = {}
        for table in self._states:
            first, *others = set(self._passed(table, vector))
            if others:
                raise _Needed(self._unsure(table))
            after[table] = first
        return {table: self._settled(table, after) for table in self._states}

    def _settled(self, table: StateTable, after: NormalForms) -> tuple[StateTable, ...]:
        form: tuple[StateTable, ...] = (table,)
        for _ in range(len(self._states) + 1):
            following = _each(after, form)
            if following == form:
                return form
            if len(following) > _MOST_PARTS:
                break
            form = following
        raise _Needed(f"ignored events keep changing partial matches at {_at(table)}")

    def _fits(self, vector: int, forms: NormalForms) -> bool:
        """Whether an event leaves every state's normal form unchanged."""
        try:
            return all(
                _each(forms, following) == forms[table]
                for table in self._states
                for following in self._passed(table, vector)
            )
        except _Needed:
            return False

    # --- the comparison

    def _check(self, forms: NormalForms) -> None:
        """Raise if a state and its normal form can be distinguished."""
        for table in self._states:
            form = forms[table]
            if form == (table,):
                continue
            if self._expiry([table]) != self._expiry(form):
                raise _Needed(self._why_at_expiry(table, form))
            for (step, *parts), _ in self._steps([table, *form]):
                if _outcome([step], forms) != _outcome(parts, forms):
                    raise _Needed(_why_different(table))

    def _expiry(self, tables: Sequence[StateTable]) -> list[bool]:
        """Return the results of a window's end: a match (True) or a timeout for each."""
        if self._nfa.window_time <= 0:
            return []
        return [t.is_pending for t in tables if t.is_pending or self._nfa.handle_timeout]

    # --- reasons

    def _why(self, table: StateTable, step: Step, answers: Answers) -> str:
        """Return how an event changes a partial match."""
        if any(holds for atom, holds in answers.items() if not atom.bit & self._known):
            return self._unsure(table)
        stage = next((move.stage for move in step.moves if move.takes), "")
        if stage:
            return f"stage {stage!r} may take an event that satisfies no condition"
        if _is_not_next(table):
            return f"the event right before {_at(table)} decides, whatever it is (notNext)"
        return f"{_at(table)} must follow directly: any event in between ends the partial match"

    def _unsure(self, table: StateTable) -> str:
        for _, answers in self._steps([table]):
            for atom in answers:
                if not atom.bit & self._known:
                    how = "in Python" if atom.expression is None else "evaluated while matching"
                    return (
                        f"the condition {atom.condition!r} of stage {atom.stage!r} "
                        f"is {how}, any event may satisfy it"
                    )
        return f"{_at(table)} depends on conditions that only Python can evaluate"

    def _why_at_expiry(self, table: StateTable, form: Sequence[StateTable]) -> str:
        if any(part.is_pending for part in form):
            return f"an event ignored at {_at(table)} begins the wait for an absent event"
        return (
            "timeouts are requested, and an ignored event splits the partial matches at "
            f"{_at(table)}, each of which times out"
        )


def _each(
    following: Mapping[StateTable, tuple[StateTable, ...]], tables: Sequence[StateTable]
) -> tuple[StateTable, ...]:
    return tuple(after for table in tables for after in following[table])


def _outcome(steps: Sequence[Step], forms: NormalForms) -> tuple[list[object], list[object]]:
    """Return the matches and partial matches after an event, as far as results distinguish them."""
    completed: list[object] = []
    continued: list[object] = []
    for move in (move for step in steps for move in step.moves):
        taken = move.stage if move.takes else None
        if move.continues:
            continued += ((taken, part) for part in forms[move.target])
        if move.completes:
            completed.append(taken)
    return completed, continued


def _is_not_next(table: StateTable) -> bool:
    actions = {edge.action for edge in table.state.transitions}
    stops = any(edge.target.kind.value == "Stop" for edge in table.state.transitions)
    return stops and StateTransitionAction.TAKE not in actions and not table.is_pending


def _why_different(table: StateTable) -> str:
    if _is_not_next(table):
        return f"the event right after the one before {_at(table)} decides (notNext)"
    return f"an ignored event changes what {_at(table)} does with later events"


def _at(table: StateTable) -> str:
    stage = table.state.stage
    return "the beginning of a group" if stage == "GroupPattern" else f"stage {stage!r}"


# --- patterns that the kernel matches without a buffer and versions


def _kinds_of_events(nfa: NFA, known: int) -> int:
    """Return how many kinds of events decide about all that happens; 0 if other things do too."""
    bits = [atom.bit & known for atom in nfa.atoms]
    waits = nfa.window_times or any(table.is_pending for table in nfa.tables.values())
    if not all(bits) or waits or nfa.skip_strategy.isSkipStrategy():
        return 0
    width = max(bits, default=0).bit_length()
    return 1 << width if width <= _MOST_ASKED else 0


def _step_of(state: StateTable, event: int) -> Step:
    """Return what an event does, by the bits of the conditions that hold."""
    node: Ask | Step = state.first()
    while isinstance(node, Ask):
        node = node.following(event & node.atom.bit != 0)
    return node


_MOST_ASKED = 6
_MOST_STATES = 30
_MOST_TOGETHER = 200


def bits_of_own_ways(nfa: NFA, known: int) -> int | None:
    """
    Return how many bits an event has, if partial matches come to each event by a way of their own.

    Then links from each event to the one taken before it do for versions. None for other patterns:
    where two partial matches that began with the same event may take another one for one stage, and
    both go on. Those of other beginnings always have other versions.

    >>> from pyflinkcep import Pattern
    >>> from pyflinkcep.engines.flink.nfa import NFACompiler
    >>> begun = Pattern.begin("a").where("x = 1").followedByAny("b").where("x = 2")
    >>> bits_of_own_ways(NFACompiler.compile(begun.followedByAny("c").where("x = 3")), known=7)
    3
    >>> bits_of_own_ways(NFACompiler.compile(begun.oneOrMore().allowCombinations()), known=3)
    """
    kinds, tables = _kinds_of_events(nfa, known), list(nfa.tables.values())
    if not kinds or len(tables) > _MOST_STATES:
        return None
    number = {table: place for place, table in enumerate(tables)}
    try:
        steps = {tuple(_step_of(table, event) for table in tables) for event in range(kinds)}
    except MalformedPatternException:
        return None
    started = [[m for m in row[number[nfa.start]].moves if not m.stays] for row in steps]
    if any(len(moves) > 1 or _is_whole(moves) for moves in started):
        return None
    # States in which two partial matches of one beginning may be at a time, and those of each.
    together: list[tuple[StateTable, ...]] = [(m.target,) for moves in started for m in moves]
    for present in together:  # it grows
        for row in steps:
            moves = [[m for m in row[number[at]].moves if m.continues] for at in present]
            taken = [move.stage for own in moves for move in own if move.takes]
            if len(set(taken)) < len(taken):
                return None
            pairs = product(*moves) if len(moves) == 2 else combinations(moves[0], 2)
            after = [*((move,) for own in moves for move in own), *pairs]
            for some in after:
                states = tuple(sorted((m.target for m in some), key=number.__getitem__))
                if states not in together:
                    together.append(states)
        if len(together) > _MOST_TOGETHER:
            return None
    return kinds.bit_length() - 1


def _is_whole(moves: Sequence[Move]) -> bool:
    """Whether some way to begin is none to take an event and go on, or completes a match."""
    return any(not move.takes or not move.continues or move.completes for move in moves)


# --- of which no partial match branches: an event moves it on, leaves it or ends it


class Action(IntEnum):
    """What an event does to a partial match."""

    STAYS = 0
    ENDS = 1
    TAKES = 2


@attrs.frozen
class Unbranched:
    """
    Such a pattern as a table.

    All partial matches of one state have one fate, and those of a later state began earlier. So
    they are queues, of which an event moves all to the next.

    >>> from pyflinkcep import Pattern
    >>> from pyflinkcep.engines.flink.nfa import NFACompiler
    >>> begun = Pattern.begin("a").where("x = 1")
    >>> Unbranched.of(NFACompiler.compile(begun.next("b").where("x = 2")), known=3)
    Unbranched(stages=('a', 'b'), actions=(0, 1, 0, 2, 2, 1, 2, 2))
    >>> Unbranched.of(NFACompiler.compile(begun.followedByAny("b").where("x = 2")), known=3)
    """

    stages: tuple[str, ...]  # By state, the stage that it takes an event for
    # By the bits of the conditions that hold, and then by state: the :class:`Action`.
    actions: tuple[int, ...]

    @classmethod
    def of(cls, nfa: NFA, known: int) -> Unbranched | None:
        """Return the table of a pattern; None if a partial match may branch, or wait for time."""
        kinds = _kinds_of_events(nfa, known)
        rows: list[list[int]] = []
        stages: list[str] = []
        state: StateTable | None = nfa.start
        while state is not None:
            if not kinds or len(stages) == _MOST_STATES:
                return None
            found = [_fate(state, event, is_start=not stages) for event in range(kinds)]
            moves = {move for _, move in found if move is not None}
            if len(moves) != 1 or any(action is None for action, _ in found):
                return None
            ((stage, following),) = moves
            rows.append([int(action or 0) for action, _ in found])
            stages.append(stage)
            state = following
        if len(stages) < 2:
            return None
        return cls(tuple(stages), tuple(row[event] for event in range(kinds) for row in rows))


_Fate = tuple[Action | None, tuple[str, StateTable | None] | None]


def _fate(state: StateTable, event: int, *, is_start: bool) -> _Fate:
    """Return what an event does; if it is taken, for which stage, and which state follows."""
    node = _step_of(state, event)
    moves = [move for move in node.moves if not move.stays]
    stays = len(moves) < len(node.moves)
    if not moves:
        if stays:
            return Action.STAYS, None
        return (Action.ENDS if node.ending is EventEnd.CONTIGUITY else None), None
    move, *others = moves
    if others or stays is not is_start or not move.takes or move.completes is move.continues:
        return None, None
    return Action.TAKES, (move.stage, move.target if move.continues else None)


# --- what may grow: the states, the partial matches, the events that they hold


_MANY_STATES = 100


def warnings_of(nfa: NFA) -> Iterator[str]:
    """Warn of long repetitions, of combinations, and of partial matches that never end."""
    if len(nfa.tables) > _MANY_STATES:
        yield (
            f"the pattern has {len(nfa.tables)} states: with times(n) of a stage each event may "
            "begin a match, so that a match of n events costs about n² steps"
        )
    yield from _doubling(nfa)
    if nfa.window_time > 0:
        return
    states = [state for state in _staged(nfa) if not nfa.tables[state.name].gap_ms]
    branching = list(dict.fromkeys(s.stage for s in states if _branches(s)))
    looping = list(dict.fromkeys(s.stage for s in states if _loops(s)))
    waiting = list(dict.fromkeys(s.stage for s in states if _waits(s)))
    if branching:
        yield (
            f"{_named(branching)} leaves a partial match behind for every event it could take "
            "or leave, and they never end"
        )
    if looping:
        yield f"{_named(looping)} loops, and the events of a partial match have no bound"
    if waiting and not branching:
        yield f"{_named(waiting)} waits for its event, possibly forever"
    if branching or looping or waiting:
        yield (
            "memory may grow without bound: write .within(timedelta(...)) on the pattern, "
            "the longest time from the first event to the last"
        )


def doubling_stages(nfa: NFA) -> list[str]:
    """Return the stages that may take or leave each event of a loop: `n` events in 2ⁿ ways."""
    return list(dict.fromkeys(s.stage for s in _staged(nfa) if _branches(s) and _loops(s)))


def splitting_stages(nfa: NFA) -> list[str]:
    """
    Return the stages of loops within loops, such as ``(a+)+``: `n` events in 2ⁿ ways.

    From such a stage the same events lead back to it in two ways, since each may go on with a round
    of the outer loop or begin another.
    """
    steps = {state.name: _ways(state) for state in _staged(nfa)}
    return list(dict.fromkeys(s.stage for s in _staged(nfa) if _splits(s, steps)))


def _doubling(nfa: NFA) -> Iterator[str]:
    doubling = doubling_stages(nfa)
    splitting = [stage for stage in splitting_stages(nfa) if stage not in doubling]
    within = f" within {duration_text(nfa.window_time)}" if nfa.window_time > 0 else ""
    many = f"n such events of a key{within} make up to 2ⁿ partial matches"
    if doubling:
        yield f"{_named(doubling)} may take or leave each event that fits, again and again: {many}"
    if splitting:
        yield (
            f"{_named(splitting)} loops within a loop: each event that fits may go on with a round "
            f"of the outer loop or begin another: {many}"
        )
    if not doubling and not splitting:
        return
    counts = (
        "; .compressed() counts the matches without listing them" if nfa.is_compressible else ""
    )
    yield f"a stricter condition, a shorter window or maxPartialMatches=... bounds them{counts}"


def _staged(nfa: NFA) -> list[State]:
    """Return the states with stages of the user's, first to last."""
    tables = [t for t in reversed(nfa.tables.values()) if not (t.is_stop or t.is_final)]
    return [table.state for table in tables if table.state.stage != "GroupPattern"]


def _named(stages: Sequence[str]) -> str:
    names = list(map(repr, stages))
    return ("stage " if len(names) == 1 else "each of the stages ") + ", ".join(names)


def _self_edges(state: State, action: StateTransitionAction) -> bool:
    return any(edge.action is action and edge.target is state for edge in state.transitions)


def _waits(state: State) -> bool:
    return state.kind is not StateType.START and _self_edges(state, StateTransitionAction.IGNORE)


def _branches(state: State) -> bool:
    """Whether the state may both take an event and stay where it is on it."""
    if state.kind is StateType.START:
        return False
    free = [
        edge
        for edge in state.transitions
        if edge.action is StateTransitionAction.IGNORE and str(edge.condition) in ("true", "None")
    ]
    takes = any(edge.action is StateTransitionAction.TAKE for edge in state.transitions)
    return bool(free) and takes


def _loops(state: State) -> bool:
    """Whether taking events leads back to the state."""

    def goes_on(edge: StateTransition) -> bool:
        is_ignore = edge.action is StateTransitionAction.IGNORE
        return not is_ignore and edge.target.kind is not StateType.STOP

    return state.kind is not StateType.START and any(
        edge.target is state and goes_on(edge)
        for at in reached(state, goes_on)
        for edge in at.transitions
    )


_Way = tuple[tuple[str, str], State]
"""How an event is taken, by which stage and on which condition, and the state after it."""


def _ways(state: State, skipped: tuple[State, ...] = ()) -> list[_Way]:
    """Return each way in which a partial match in a state may take an event."""
    found: list[_Way] = []
    for edge in state.transitions:
        if edge.action is StateTransitionAction.TAKE:
            found.append(((state.stage, str(edge.condition)), edge.target))
        elif edge.action is StateTransitionAction.PROCEED and edge.target not in skipped:
            found += _ways(edge.target, (*skipped, state))
    return found


def _splits(state: State, steps: dict[str, list[_Way]]) -> bool:
    """Whether two ways to take one event from a state both lead back to it, on equal events."""

    def after(at: State) -> list[_Way]:
        return steps[at.name] if at.name in steps else _ways(at)

    first = combinations(after(state), 2)
    pairs = [(one[1], other[1]) for one, other in first if one[0] == other[0]]
    for left, right in pairs:  # it grows: each pair of states that equal events may lead to
        if left is state and right is state:
            return True
        for event, one in after(left):
            for same, other in after(right):
                if event == same and (one, other) not in pairs:
                    pairs.append((one, other))
    return False
