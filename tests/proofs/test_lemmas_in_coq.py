"""Every schema of a lemma is a theorem of Coq, in the words that its own code gives."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from mmcache_spec.checks.theories import CoqFailed, NoCoq, Theories, coq_problems, drifted
from mmcache_spec.cli.lemmas import lemmas_command
from mmcache_spec.kernel import lemmas, schemas
from mmcache_spec.kernel.pointwise import SET_OPERATIONS
from mmcache_spec.kernel.schemas import (
    Element,
    Fact,
    Key,
    Members,
    Schema,
    Weight,
    statements,
)
from mmcache_spec.kernel.terms import SetSort, Sort, Term, exists, forall, total
from mmcache_spec.render.coq import THEORIES, generated_files, statements_file, theorems

FOLDER = Path(__file__).parents[2] / "spec" / "lemmas"

# Where CI runs, a prover that is missing is a failure: the proofs would go unchecked in silence.
needs_coq = pytest.mark.skipif(
    shutil.which("coqc") is None and not os.environ.get("CI"),
    reason="coqc is not installed; Debian and Ubuntu have it in the package coq",
)


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy, so that what a test changes is as before after it."""
    monkeypatch.setattr(schemas, "SCHEMAS", dict(schemas.SCHEMAS))


@pytest.fixture
def theories(tmp_path: Path) -> Theories:
    """A copy of the theories, to be changed."""
    folder = tmp_path / "lemmas"
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("*.vo*", "*.glob", ".*"))
    return Theories(folder, THEORIES, generated_files())


# --- it is proved ------------------------------------------------------------------------------


@needs_coq
def test_every_schema_is_proved_from_no_axiom() -> None:
    said = CliRunner().invoke(lemmas_command, ["--check", str(FOLDER)])
    assert said.output.startswith(f"{len(statements())} schemas of lemmas proved in Coq")
    assert said.exit_code == 0


def test_the_generated_theories_are_as_generated() -> None:
    assert drifted(Theories(FOLDER, THEORIES, generated_files())) == []


# --- all of it ---------------------------------------------------------------------------------


def test_there_is_a_theorem_for_every_schema() -> None:
    """By three counts: the functions on offer, the registry, and what Coq is asked."""
    offered = {f.name for f in vars(lemmas).values() if isinstance(f, Schema)}
    assert offered == set(schemas.SCHEMAS)
    callables = {n for n in lemmas.__all__ if n not in ("Lemma", "measure_instances")}
    assert callables == offered
    proofs = (FOLDER / "Proofs.v").read_text("utf-8")
    proved = re.findall(r"^Theorem (\w+) : \1_statement\.$", proofs, flags=re.MULTILINE)
    named = [s.name for s in statements()]
    assert {re.sub(r"_[123]$", "", n) for n in named} == offered
    assert set(proved) == {*named, *(f"members_of_{o}" for o in SET_OPERATIONS)}
    assert set(proved) <= set(theorems())


def test_every_theorem_is_asked_for_its_axioms() -> None:
    check = generated_files()["Check"]
    tuple_ = check[check.index("Definition everything") :]
    assert re.findall(r"@([\w.]+)", tuple_) == theorems()
    assert check.rstrip().endswith("Print Assumptions everything.")


def test_no_theory_leaves_anything_out() -> None:
    """Every theorem of the two theories by hand is asked for, or used for one that is."""
    for name in ("FiniteSets", "Finiteness"):
        text = (FOLDER / f"{name}.v").read_text("utf-8")
        stated = re.findall(r"^ *Theorem (\w+)", text, flags=re.MULTILINE)
        assert {f"{name}.{t}" for t in stated} <= set(theorems())


# --- it can fail -------------------------------------------------------------------------------


def no_more_than_both(one: Members, two: Members, weight: Weight) -> Term:
    return total(one, weight) + total(two, weight) <= total(one.union(two), weight)


def whether_new_or_not(members: Members, x: Element, weight: Weight) -> Term:
    return total(members.insert(x), weight) == total(members, weight) + weight(x)


def of_any_part(members: Members, part: Members, weight: Weight) -> Term:
    return total(members.minus(part), weight) == total(members, weight) - total(part, weight)


def the_other_way(part: Members, whole: Members, weight: Weight) -> Term:
    return part.subset_of(whole).implies(total(whole, weight) <= total(part, weight))


def even_of_an_empty_set(members: Members, key: Key, fact: Fact) -> Term:
    (sort,) = members.sort.elements if isinstance(members.sort, SetSort) else (Sort("T"),)
    return exists(sort, lambda x: members.has(x) & fact(x).formula)


def less_than_all(members: Members, key: Key, fact: Fact) -> Term:
    (sort,) = members.sort.elements if isinstance(members.sort, SetSort) else (Sort("T"),)
    first = exists(
        sort,
        lambda x: members.has(x) & forall(sort, lambda y: members.has(y).implies(key[x] < key[y])),
    )
    return exists(sort, lambda x: members.has(x)).implies(first)


@needs_coq
@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("union_bound", no_more_than_both),
        ("insertion", whether_new_or_not),
        ("subtraction", of_any_part),
        ("monotone", the_other_way),
        ("has_least", even_of_an_empty_set),
        ("has_greatest", less_than_all),
    ],
)
def test_a_wrong_schema_is_refused(registry: None, name: str, wrong: Callable[..., Term]) -> None:
    """Its statement changes with its code, and the proof does not fit any more."""
    schemas.SCHEMAS[name] = Schema(wrong)
    schemas.SCHEMAS[name].name = name
    del schemas.SCHEMAS[wrong.__name__]
    changed = Theories(FOLDER, THEORIES, generated_files())
    assert "Statements.v" in [p.name for p in drifted(changed)]
    (problem,) = coq_problems(changed)
    assert problem.startswith("Proofs.v is refused")
    assert _theorem_at(problem) == name


def _theorem_at(problem: str) -> str:
    """The theorem in whose proof Coq stopped."""
    line = re.search(r"line (\d+)", problem)
    assert line is not None
    before = (FOLDER / "Proofs.v").read_text("utf-8").splitlines()[: int(line[1])]
    return str(re.findall(r"^Theorem (\w+)", "\n".join(before), flags=re.MULTILINE)[-1])


@needs_coq
def test_a_schema_without_a_proof_is_refused(registry: None) -> None:
    @Schema
    def brand_new(members: Members, weight: Weight) -> Term:
        return total(members, weight) >= 0

    (problem,) = coq_problems(Theories(FOLDER, THEORIES, generated_files()))
    assert problem.startswith("Check.v is refused")
    assert "brand_new" in problem


def _edited(theories: Theories, name: str, old: str, new: str) -> Theories:
    path = theories.folder / f"{name}.v"
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")
    return theories


UNION_BOUND = "Theorem union_bound : union_bound_statement."


@needs_coq
@pytest.mark.parametrize(
    "instead",
    [
        "Axiom union_bound : union_bound_statement.\n",
        "Theorem union_bound : union_bound_statement. Proof. Admitted.\n",
    ],
)
def test_an_axiom_in_the_place_of_a_proof_is_told(theories: Theories, instead: str) -> None:
    proofs = (theories.folder / "Proofs.v").read_text("utf-8")
    whole = re.search(rf"{re.escape(UNION_BOUND)}.*?Qed\.\n", proofs, flags=re.DOTALL)
    assert whole is not None
    (problem,) = coq_problems(_edited(theories, "Proofs", whole.group(), instead))
    assert problem.startswith("the theorems rest on assumptions")
    assert "union_bound" in problem


@needs_coq
def test_another_theorem_of_the_same_name_is_refused(theories: Theories) -> None:
    """`True` is soon proved, whatever it is called."""
    redefined = f"Definition union_bound_statement := True.\n{UNION_BOUND}\nProof. exact I. Qed.\n"
    proofs = (theories.folder / "Proofs.v").read_text("utf-8")
    whole = re.search(rf"{re.escape(UNION_BOUND)}.*?Qed\.\n", proofs, flags=re.DOTALL)
    assert whole is not None
    (problem,) = coq_problems(_edited(theories, "Proofs", whole.group(), redefined))
    assert problem.startswith("Check.v is refused")


@needs_coq
def test_another_meaning_of_total_is_refused(theories: Theories) -> None:
    wrong = _edited(theories, "FiniteSets", "weight x + rest", "weight x + weight x + rest")
    (problem,) = coq_problems(wrong)
    assert problem.startswith("FiniteSets.v is refused")


def test_a_file_that_was_edited_is_told(theories: Theories) -> None:
    _edited(theories, "Statements", "<= total one weight", "<= 1 + total one weight")
    assert [p.name for p in drifted(theories)] == ["Statements.v"]


# --- names -------------------------------------------------------------------------------------


def test_a_bound_variable_does_not_hide_an_argument(registry: None) -> None:
    """Coq knows variables by name, and we by identity."""

    @Schema
    def hidden(members: Members, x: Element) -> Term:
        sort = x.sort
        return forall(sort, lambda x_: forall(sort, lambda y: members.has(y) & members.has(x)))

    @Schema
    def nested(members: Members, x: Element) -> Term:
        def inner(y: Term) -> Term:
            return forall(x.sort, lambda x: members.has(x) & members.has(y))

        return forall(x.sort, inner) & members.has(x)

    text = statements_file()
    assert "(forall (y : T), forall (x' : T), member members x' /\\ member members y)" in text
    assert "member members x." in text


# --- without Coq -------------------------------------------------------------------------------


def test_without_coq_nothing_is_claimed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoCoq, match="package coq"):
        coq_problems(Theories(FOLDER, THEORIES, generated_files()))
    said = CliRunner().invoke(lemmas_command, ["--check", str(FOLDER)])
    assert (said.exit_code, said.output) == (
        3,
        "unknown: coqc is not installed; Debian and Ubuntu have it in the package coq\n",
    )


def _stand_ins(folder: Path, coqc: str, coqchk: str = "exit 0") -> None:
    for name, script in (("coqc", coqc), ("coqchk", coqchk)):
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)


def test_a_coq_that_is_killed_proves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _stand_ins(tmp_path, "kill -9 $$")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(CoqFailed, match="coqc was killed by signal 9 at FiniteSets"):
        coq_problems(Theories(FOLDER, THEORIES, generated_files()))


def test_a_coq_that_says_nothing_proves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _stand_ins(tmp_path, "exit 0")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    (problem,) = coq_problems(Theories(FOLDER, THEORIES, generated_files()))
    assert problem.startswith("the theorems rest on assumptions")


def test_what_coqchk_refuses_is_not_proved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _stand_ins(tmp_path, "echo Closed under the global context", "echo no >&2; exit 1")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    problems = coq_problems(Theories(FOLDER, THEORIES, generated_files()))
    assert problems == ["coqchk refuses what coqc has made:\nno"]


# --- the command -------------------------------------------------------------------------------


def test_the_command_says_how_to_mend_a_drift(
    theories: Theories, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (theories.folder / "Check.v").write_text("")
    monkeypatch.setenv("PATH", str(tmp_path))
    said = CliRunner().invoke(lemmas_command, ["--check", str(theories.folder)])
    assert said.exit_code == 3
    _stand_ins(tmp_path, "echo Closed under the global context")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    said = CliRunner().invoke(lemmas_command, ["--check", str(theories.folder)])
    assert said.exit_code == 1
    assert "mend it: mmcache-spec lemmas --coq Check >" in said.output


def test_the_command_says_which_theory_is_missing(
    theories: Theories, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (theories.folder / "Proofs.v").unlink()
    _stand_ins(tmp_path, "exit 0")
    monkeypatch.setenv("PATH", str(tmp_path))
    said = CliRunner().invoke(lemmas_command, ["--check", str(theories.folder)])
    assert said.exit_code == 2
    assert said.output == f"{theories.folder / 'Proofs.v'}: No such file or directory\n"


@pytest.mark.parametrize("theory", ["Statements", "Check"])
def test_the_command_prints_the_theories(theory: str) -> None:
    said = CliRunner().invoke(lemmas_command, ["--coq", theory])
    assert said.output == generated_files()[theory]
