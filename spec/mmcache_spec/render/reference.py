"""The reference page: clauses, invariants, actions, lemmas and variants, out of the definitions."""

from __future__ import annotations

from collections.abc import Iterator

from mmcache_vectors.clauses import CLAUSES, Clause, report_address

from ..checks.induction import Obligation, holds_by_definition
from ..checks.vacuity import lemmas_of
from ..evaluate.text import formula, lines, names_in
from ..kernel.system import Action, ActionProperty, Property, TransitionSystem
from ..kernel.terms import Term
from ..model.variants import SPECIFIED, VARIANTS

__all__ = ["reference_page", "report_link"]

TITLES = {
    "ledger": "The ledger (`EncoderCacheManager`)",
    "encoder_decoder": "The encoder-decoder ledger (`EncoderDecoderCacheManager`)",
    "engine": "The engine: scheduler, ledger and worker",
    "progress": "Progress",
    "processor_cache": "The processor cache of P0 and P1",
}


def report_link(report: str) -> str:
    """A public report as a Markdown link."""
    return f"[{report}]({report_address(report)})"


def reference_page() -> str:
    """The whole page, as Markdown."""
    return "\n".join(_page()) + "\n"


def _page() -> Iterator[str]:
    yield "# Clauses, actions, lemmas, variants"
    yield ""
    yield "*Generated from the definitions by `mmcache-spec clauses --markdown`. Do not edit.*"
    yield ""
    yield "A prime marks the value after the call; `result` is what the call returns; `where`"
    yield "explains an abbreviation. Everything here is proved for any number of hashes, requests"
    yield "and inputs, any sizes and any capacity."
    yield ""
    yield "## The clauses"
    for clause in CLAUSES.values():
        yield from _clause(clause)
    for system in SPECIFIED.systems:
        yield ""
        yield f"## {TITLES[system.name]}"
        yield from _system(system)
    yield ""
    yield "## Variants"
    yield ""
    yield "Each takes one decision the wrong way. *Breaks* are the clauses that can no longer be"
    yield "proved; the call sequences are the shortest counterexamples."
    yield ""
    yield "| variant | the decision | seen in | breaks | from the empty cache | within a pass |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for variant in VARIANTS.values():
        if variant.expected is not None:
            seen = ", ".join(map(report_link, variant.seen_in)) or "–"
            breaks = ", ".join(f"[{c}](#{c.lower()})" for c in variant.expected.breaks)
            init, within = (
                "–"
                if actions is None
                else f"{len(actions)}: {', '.join(f'`{a}`' for a in actions)}"
                for actions in (variant.expected.from_init, variant.expected.from_pass)
            )
            yield f"| `{variant.name}` | {variant.says} | {seen} | {breaks} | {init} | {within} |"


def _clause(clause: Clause) -> Iterator[str]:
    yield ""
    yield f'<a id="{clause.id.lower()}"></a>'
    yield f"### {clause.id} `{clause.name}`"
    yield ""
    yield clause.says
    for system in SPECIFIED.systems:
        for prop in system.stating(clause.id):
            yield ""
            yield f"{_where(prop, system)}{_grounds(prop, system)}:"
            yield ""
            yield from _formula(prop.formula)
    yield ""
    if clause.reports:
        yield f"Public reports: {', '.join(map(report_link, clause.reports))}."
    else:
        yield "No public report."


def _grounds(prop: Property, system: TransitionSystem) -> str:
    """Whether the definition of the call says it by itself: its proof tells nothing of the rest."""
    if not isinstance(prop, ActionProperty):
        return ""
    obligation = Obligation(system, prop, system.action(prop.action), "action")
    return " (by the definition of the call alone)" if holds_by_definition(obligation) else ""


def _where(prop: Property, system: TransitionSystem) -> str:
    if isinstance(prop, ActionProperty):
        return f"`{prop.name}`, at every `{prop.action}` of the {system.name.replace('_', '-')}"
    return f"`{prop.name}`, in every state of the {system.name.replace('_', '-')}"


def _formula(term: Term) -> Iterator[str]:
    yield "```"
    yield from lines(term)
    yield from _abbreviations(names_in(term))
    yield "```"


def _abbreviations(names: dict[str, Term]) -> Iterator[str]:
    for name, meaning in names.items():
        first, *others = lines(meaning)
        yield f"where {name} := {first.strip()}"
        yield from (f"      {other}" for other in others)


def _system(system: TransitionSystem) -> Iterator[str]:
    yield ""
    yield "State: " + ", ".join(
        f"`{v.name}: {v.sort}`" for v in system.variables if v.role != "ghost"
    )
    yield from _record(system)
    yield ""
    yield "### World"
    yield ""
    for axiom in system.axioms:
        yield f"* `{axiom.name}`: `{formula(axiom.formula)}`"
    yield ""
    yield "### Strengthening invariants"
    yield ""
    yield "Not clauses, but needed to prove them, and proved with them."
    yield ""
    for invariant in system.invariants:
        if invariant.clause is None:
            yield f"* `{invariant.name}`: `{formula(invariant.formula)}`"
    yield ""
    yield "### Actions"
    for action in system.actions:
        yield from _action(action)
    yield ""
    yield "### What the proofs take from outside of logic"
    yield ""
    yield "First-order logic knows nothing of sums over sets. The proofs are given these instances"
    yield "of facts about finite sets, and nothing else; `mmcache-spec prove` checks each on all"
    yield "small sets. Abbreviations are those of the action concerned."
    yield ""
    yield "```"
    for lemma in lemmas_of(system):
        yield formula(lemma)
    yield "```"


def _record(system: TransitionSystem) -> Iterator[str]:
    if not system.monitors:
        return
    yield ""
    yield "### The record"
    yield ""
    yield "What an observer of the calls notes down, whatever the design does: no action writes it,"
    yield "and none reads it."
    for monitor in system.monitors:
        name = monitor.variable.name
        yield ""
        yield f"`{name}: {monitor.variable.sort}`"
        yield ""
        yield "```"
        yield f"at the start: {formula(monitor.init)}"
        for action, value in monitor.updates.items():
            yield f"at {action}: {name}′ = {formula(value)}"
        yield "```"


def _action(action: Action) -> Iterator[str]:
    parameters = ", ".join(f"{p.name}: {p.sort}" for p in action.parameters)
    yield ""
    yield f"#### `{action.name}({parameters})`"
    yield ""
    yield "```"
    for name, guard in action.guard.items():
        yield f"guard {name}: {formula(guard)}"
    if action.returns is not None:
        yield f"returns {formula(action.returns)}"
    effect = [line for line in action.effect if line[0].role != "ghost"]
    for variable, value in effect:
        yield f"{variable.name}′ = {formula(value)}"
    names: dict[str, Term] = {}
    for _, value in effect:
        names.update(names_in(value))
    yield from _abbreviations(names)
    yield "```"
