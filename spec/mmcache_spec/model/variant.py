"""What a variant is: a named set of design switches, and what is expected of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ..kernel.system import Property, TransitionSystem

__all__ = ["Expected", "Variant"]


@dataclass(frozen=True)
class Expected:
    """What is expected of a wrong variant."""

    breaks: tuple[str, ...]
    """The clauses with an obligation that has a counterexample to induction."""
    from_init: tuple[str, ...]
    """The actions of the shortest counterexample from the empty cache."""
    from_pass: tuple[str, ...] | None = None
    """The same from any state in which a scheduling pass may begin; None of a protocol that has no
    passes."""
    target: str | None = None
    """The clause that the counterexamples break, where not simply the first."""
    lasso: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    """Of a livelock: the actions of the shortest lasso, its stem and its loop."""


@dataclass(frozen=True)
class Variant:
    """A named set of decisions: what it says, where it was seen, what is expected of it."""

    name: str
    says: str
    made_of: tuple[Callable[[], TransitionSystem], ...]
    """What gives its systems, on demand: whoever wants one variant need not make all of them."""
    seen_in: tuple[str, ...] = ()
    """Public reports, or projects, of the decision."""
    expected: Expected | None = None
    """None where everything is proved."""
    never: Mapping[str, str] = field(default_factory=dict)
    """Of a right variant: the conditions of clauses that cannot come true under its decisions, as
    the vacuity check names them, and why not. One that does come true is an error."""

    @cached_property
    def systems(self) -> tuple[TransitionSystem, ...]:
        return tuple(make() for make in self.made_of)

    @property
    def aims_at(self) -> tuple[Property, ...] | None:
        """The properties that the expected counterexamples break; None for any clause."""
        if self.expected is None or self.expected.target is None:
            return None
        return self.system.stating(self.expected.target)

    @property
    def system(self) -> TransitionSystem:
        """The one system that a wrong variant changes."""
        (system,) = self.systems
        return system
