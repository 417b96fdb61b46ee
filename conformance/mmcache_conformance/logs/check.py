"""Trace validation: is a recorded log a behaviour of the specification?

The log is read once, event by event. The reference follows it (`follow`); a sample of the events,
and every event on which the two disagree, is also run on the specification's interpreter, within
the part of the state that the event can touch (`project`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from .audit import ModelDisagrees
from .decisions import decisions_in, decisions_of_pass
from .explain import Illegal, Wrong, explain
from .follow import REFERENCES
from .followed import Followed, References
from .format import (
    NEEDED_CALLS,
    Created,
    CutOff,
    Header,
    LogError,
    LogEvent,
    PassEnded,
    read_events,
    read_log,
)
from .verdict import Checked

__all__ = ["AUDIT_EVERY", "ModelDisagrees", "check_log"]

AUDIT_EVERY = 1000
"""One call in so many is also run on the interpreter."""

_CONFIRMED = 1000
"""So many events before an illegal one are run on the interpreter before it is called illegal."""

_EXPLAINED = 10
"""Illegal events of one log that are explained; those after them are counted."""

Lines = Callable[[], Iterable[bytes]]
"""Opens the log anew."""


def check_log(
    lines: Lines,
    source: str,
    *,
    can_reread: bool = True,
    audit_every: int = AUDIT_EVERY,
    references: References = REFERENCES,
) -> Checked:
    """Read the log to its end.

    Each manager is judged up to what is illegal in it, and again from its next reset.

    Args:
        lines: Opens the log.
        source: Its name, for messages.
        can_reread: Whether the lines can be read again, which is done only for an illegal event:
            to make sure of it, and for its history.
        audit_every: One call in so many is also run on the interpreter.
        references: The classes that follow the log.

    Raises:
        LogError: The log is malformed, and nothing is illegal before it is.
        ModelDisagrees: The reference does otherwise than the interpreter.
    """
    header, numbered = read_log(lines(), source)
    reading = _Reading(lines, source, can_reread, audit_every, references, header)
    cut: int | None = None
    unread: str | None = None
    try:
        for number, event in numbered:
            reading.take(number, event)
    except CutOff as error:
        cut = error.line
    except LogError as error:
        if not reading.illegal:
            raise
        unread = str(error)
    return reading.verdict(cut, unread)


@dataclass
class _Reading:
    """One log, as far as it is read."""

    lines: Lines
    source: str
    can_reread: bool
    audit_every: int
    references: References
    header: Header
    followed: dict[str, Followed] = field(default_factory=dict)
    created: dict[str, Created] = field(default_factory=dict)
    illegal: list[Illegal] = field(default_factory=list)
    events: int = 0
    audited: int = 0
    unexplained: int = 0
    until_audit: int = 1

    def take(self, number: int, event: LogEvent) -> None:
        """One event. Raises `LogError`, `ModelDisagrees`."""
        manager = self.followed.get(event.manager)
        if manager is None:
            self._begin(number, event)
            return
        _expect_in_order(manager, event, self.source, number)
        self.events += 1
        self.until_audit -= 1
        audit = self.until_audit <= 0 and manager.can_be_audited(event)
        wrong = manager.take(event, number, audit)
        if wrong is not None:
            self._accuse(manager, number, event, wrong)
        elif audit:
            self.until_audit = self.audit_every
            self.audited += 1

    def verdict(self, cut: int | None, unread: str | None) -> Checked:
        managers = self.followed.items()
        return Checked(
            source=self.source,
            events=self.events,
            calls=sum(m.calls for _, m in managers),
            managers=len(self.followed),
            unfinished=tuple(name for name, m in managers if not m.ended),
            audited=self.audited,
            illegal=self.illegal[0] if self.illegal else None,
            also_illegal=tuple(self.illegal[1:]),
            unexplained=self.unexplained,
            not_judged=self._told(m for m in self._each(Followed.not_judged)),
            holes=self._told(m for m in self._each(Followed.holes)),
            doubt=self._doubt(),
            cut=cut,
            unread=unread,
        )

    def _begin(self, number: int, event: LogEvent) -> None:
        if not isinstance(event, Created) or event.seq != 0:
            raise LogError(
                f"{self.source}: line {number}: manager {event.manager!r} is not known; its first "
                'event is "new" with seq 0, so the beginning of the log is missing, or the log is '
                "reordered"
            )
        _expect_complete(event, self.header, self.source, number)
        self.events += 1
        self.created[event.manager] = event
        self.followed[event.manager] = Followed(event, self.references)

    def _accuse(self, manager: Followed, number: int, event: LogEvent, wrong: Wrong) -> None:
        if len(self.illegal) >= _EXPLAINED:
            self.unexplained += 1
            return
        lines = self.lines if self.can_reread else None
        if lines is not None:
            _confirm(lines(), self.source, event, self.references)
        illegal = explain(
            wrong, number, event, manager.follower, lines, self.source, since=manager.began_at
        )
        if lines is not None and wrong.clauses:
            if isinstance(event, PassEnded):
                named = decisions_of_pass(lines(), self.source, event, wrong.unmade)
            else:
                named = decisions_in(lines(), self.source, event)
            illegal = msgspec.structs.replace(illegal, decisions=named)
        self.illegal.append(illegal)

    def _each(self, of: Callable[[Followed], Iterable[str]]) -> Iterator[tuple[str, str]]:
        return ((name, said) for name, manager in self.followed.items() for said in of(manager))

    def _told(self, said: Iterable[tuple[str, str]]) -> tuple[str, ...]:
        """Each thing once, with the managers of which it is said unless it is said of all."""
        by: dict[str, list[str]] = {}
        for name, text in said:
            by.setdefault(text, []).append(name)
        every = len(self.followed)
        return tuple(
            text if len(names) == every else f"{text} (manager {_few(names)})"
            for text, names in by.items()
        )

    def _doubt(self) -> str | None:
        doubts = {
            name: m.doubt(self.created[name], self.header) for name, m in self.followed.items()
        }
        name, doubt = next(((n, d) for n, d in doubts.items() if d is not None), ("", None))
        return doubt if doubt is None or len(doubts) == 1 else f"of manager {name}: {doubt}"


_FEW = 3


def _few(names: list[str]) -> str:
    more = len(names) - _FEW
    return ", ".join(names[:_FEW]) + (f" and {more} more" if more > 0 else "")


def _expect_complete(created: Created, header: Header, source: str, number: int) -> None:
    """Raises `LogError` if the log says that a call is not recorded which all else rests on."""
    records = header.records if created.records is None else created.records
    lacking = [] if records is None else [c for c in NEEDED_CALLS if c not in records]
    if lacking:
        raise LogError(
            f"{source}: line {number}: of manager {created.manager!r} "
            f"{', '.join(f'`{c}`' for c in lacking)} was not recorded, so that nothing follows "
            "from the rest; record it again"
        )


def _expect_in_order(manager: Followed, event: LogEvent, source: str, number: int) -> None:
    where, wanted = f"{source}: line {number}: manager {event.manager!r}", manager.next_seq
    if event.seq != wanted:
        gap = event.seq - wanted
        what = f"{gap} event{'s are' if gap > 1 else ' is'} missing before it"
        raise LogError(
            f"{where}: seq {event.seq} where {wanted} comes next; "
            f"{what if gap > 0 else 'it comes twice'}, or the log is reordered, or two writers "
            "share the name"
        )
    manager.next_seq += 1
    if manager.ended:
        raise LogError(f"{where} ended before this event")


def _confirm(
    lines: Iterable[bytes], source: str, accused: LogEvent, references: References
) -> None:
    """Follow the manager again, its last calls on the interpreter too, before the log is accused.

    A reference that went astray a little before would otherwise call a right log illegal.

    Raises:
        ModelDisagrees: So it was.
    """
    followed: Followed | None = None
    for number, event in read_events(lines, source):
        if event.manager != accused.manager:
            continue
        if followed is None:
            assert isinstance(event, Created), "the first reading has seen to that"
            followed = Followed(event, references)
        elif event.seq == accused.seq:
            return
        else:
            near = accused.seq - event.seq <= _CONFIRMED
            followed.take(event, number, near and followed.can_be_audited(event))
