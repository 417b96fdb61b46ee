"""What the user demands of a run beyond its verdicts: that enough of the target was tested."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from ..targets.api import near_to
from ..targets.protocol import CAPABILITIES, MANAGERS
from .model import TargetReport

__all__ = ["Demanded", "UnknownCapability"]


class UnknownCapability(ValueError):
    """What is required is nothing that a target can have."""


@dataclass(frozen=True)
class Demanded:
    """`require` are names of capabilities, or of kinds of manager, that a target must have.

    A capability is asked of every kind of manager that the target has and that can have it.
    `max_skipped` is how many vectors may be skipped on it; None for any number.
    """

    require: tuple[str, ...] = ()
    max_skipped: int | None = None

    def __post_init__(self) -> None:
        known = {*MANAGERS, *(name for names in CAPABILITIES.values() for name in names)}
        for name in self.require:
            if name not in known and not name.startswith("x-"):
                raise UnknownCapability(
                    f"{name!r} is no capability{near_to(name)}; there are: "
                    f"{', '.join(sorted(known))}"
                )

    def of(self, report: TargetReport) -> TargetReport:
        """The report; with a `reason` where the target has not given what is demanded of it."""
        if report.implementation is None:
            return report
        said = [*self._lacking(report), *self._skipped(report)]
        if not said:
            return report
        return msgspec.structs.replace(report, reason="; ".join(said))

    def _lacking(self, report: TargetReport) -> list[str]:
        assert report.implementation is not None
        offered = report.implementation.capabilities
        lacking = []
        for name in self.require:
            if name in MANAGERS:
                has = name in offered
            else:
                able = [k for k in offered if k == "engine" or self._can_have(k, name)]
                has = bool(able) and all(name in offered[kind] for kind in able)
            if not has:
                lacking.append(name)
        return [f"it lacks {', '.join(lacking)}, which --require asks for"] if lacking else []

    @staticmethod
    def _can_have(kind: str, name: str) -> bool:
        return name.startswith("x-") or name in CAPABILITIES.get(kind, ())  # type: ignore[call-overload]

    def _skipped(self, report: TargetReport) -> list[str]:
        skipped = report.count()["skip"]
        if self.max_skipped is None or skipped <= self.max_skipped:
            return []
        return [f"{skipped} vectors were skipped, more than --max-skipped {self.max_skipped}"]
