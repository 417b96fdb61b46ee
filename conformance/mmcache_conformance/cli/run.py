"""`mmcache-conformance run`: vectors on targets: managers, engines and pairs alike."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .options import (
    check_files,
    configuration_option,
    each_by_itself,
    foreign_code,
    in_process_option,
    json_option,
    make_console,
    no_vector_matches,
    print_document,
    refresh_option,
    report_options,
    select_option,
    selection,
    timeout_option,
    usage_errors,
    vectors_option,
    write_file,
)

if TYPE_CHECKING:
    from ..open import Target
    from ..suites.load import AnyVector
    from ..verdicts.expected import ExpectedFailures
    from ..verdicts.model import RunReport, TargetReport

__all__ = ["run"]


@click.command()
@click.argument("targets", nargs=-1, metavar="[TARGET]...")
@select_option
@json_option
@click.option("--quiet", "-q", is_flag=True, help="One line a target.")
@click.option("--fail-fast", is_flag=True, help="Stop at the first vector that fails.")
@click.option(
    "--require",
    multiple=True,
    metavar="CAPABILITY",
    help="Code 3 if a TARGET lacks it: a call, what it shows of its state, or a kind of manager.",
)
@click.option(
    "--max-skipped",
    type=click.IntRange(0, 10**6),
    metavar="N",
    help="Code 3 if more than N vectors are skipped on a TARGET.",
)
@click.option(
    "--plain", is_flag=True, help="Play each vector as it is, and not in larger worlds as well."
)
@timeout_option
@in_process_option
@refresh_option
@configuration_option
@report_options
@vectors_option
@click.pass_context
def run(
    context: click.Context,
    targets: tuple[str, ...],
    expression: str | None,
    as_json: bool,
    quiet: bool,
    fail_fast: bool,
    require: tuple[str, ...],
    max_skipped: int | None,
    plain: bool,
    timeout: float | None,
    in_process: bool,
    refresh: bool,
    configuration: str | None,
    expected: Path | None,
    html: Path | None,
    junit: Path | None,
    markdown: Path | None,
    directory: Path | None,
) -> None:
    """Run the vectors against every TARGET.

    \b
    TARGET is a manager:
      reference             the reference implementation (the default)
      module:Class          any class that can be imported, also from here;
                            module:Class,module:Class adds the manager for
                            encoder-decoder models
      vllm                  the vLLM that is installed
      vllm:PATH             an encoder_cache_manager.py, a checkout or a wheel
      vllm:VERSION          a released vLLM, such as vllm:0.33.0
      vllm:PATH:Class       another class of that file, or two, as above
      cmd:COMMAND           a program that speaks the adapter protocol
    or a whole engine, which gets the engine vectors:
      reference-pass        the reference engine; after a colon, the variant
                            of the specification whose mistake it makes
      vllm-scheduler        the scheduler of a vLLM that can be imported;
                            after colons: v1 or v2 (which runner's worker),
                            withdraw, payload, skip (the repairs), mmcache
                            or two-phase (a ledger of the reference in it),
                            scheduler=module:Class (a fork's scheduler)
      cmd:COMMAND           a program whose adapter declares itself an engine;
                            one that is a manager, too, is tested as both

    \b
    or a pair of processor caches, which gets the pair vectors:
      reference-pair        the two classes of the reference
      pair:module:Sender,module:Receiver
                            two classes that can be imported
      vllm-processor-cache:VERSION
                            those of a released vLLM, with its own request
                            procedure; after a colon: order (a repair)

    \b
    The exit code is 0 if everything passed, 1 if something failed, 2 if the
    command cannot be understood, 3 if a target could not be started or
    driven, if nothing of it could be checked, or less than was demanded
    (--require, --max-skipped), 130 if it was interrupted.
    """
    from ..open import open_targets
    from ..targets.open import REFERENCE
    from ..verdicts.demanded import Demanded
    from ..verdicts.expected import apply_expected
    from ..verdicts.run import exit_code, run_target, summarise
    from ..verdicts.together import apart, together

    check_files({"--html": html, "--junit": junit, "--markdown": markdown})
    with usage_errors():
        demanded = Demanded(require, max_skipped)
        opened = [
            target
            for name in targets or (REFERENCE,)
            for target in open_targets(
                name,
                timeout=timeout,
                configuration=configuration,
                in_process=in_process,
                refresh=refresh,
            )
        ]
        if expected is not None and len(targets) > 1:
            raise click.UsageError("--expected is about one target; run the others by themselves")
        opened, vectors = _vectors_for(opened, expression, directory)
        known_failures = _expected_of(expected, opened, directory)

    def told(report: TargetReport, played: Sequence[AnyVector]) -> TargetReport:
        """What broke, and which decisions explain it; the specification is asked only then."""
        if not any(verdict.failure is not None for verdict in report.verdicts):
            return report
        from ..oracle.decisions import explained

        return explained(report, played)

    reports: list[TargetReport] = []
    for target, mine in zip(opened, vectors, strict=True):
        with foreign_code():
            report = run_target(
                target, mine, fail_fast=fail_fast, directory=directory, stretch=not plain
            )
        report = told(demanded.of(report), mine)
        if known_failures is not None and len(opened) == 1:
            report = apply_expected(report, *known_failures)
        reports.append(report)
        if fail_fast and exit_code(reports) != 0:
            break
    if known_failures is not None and len(opened) > 1:  # of one program, which is of two kinds
        reports = list(apart(apply_expected(together(reports), *known_failures), reports))
    used = {vector.id: vector for mine in vectors for vector in mine}
    everything = tuple(used[id] for id in sorted(used))
    summary = summarise(reports, everything)

    def printed() -> None:
        if as_json:
            print_document(summary)
        else:
            from ..reports.terminal import print_run

            print_run(reports, everything, make_console(), quiet=quiet)
        sys.stdout.flush()

    # A reader that went away wants no more lines, and its reports all the same.
    gone: BrokenPipeError | None = None
    with each_by_itself() as attempt:
        try:
            attempt(printed)
        except BrokenPipeError as error:
            gone = error
        for write in _reports(summary, everything, html=html, junit=junit, markdown=markdown):
            attempt(write)
    if gone is not None:
        raise gone
    context.exit(summary.exit_code)


def _vectors_for(
    targets: Sequence[Target], expression: str | None, directory: Path | None
) -> tuple[list[Target], list[tuple[AnyVector, ...]]]:
    """For each target, the selected vectors of the kind that is about it.

    Of a program that is a manager and an engine, one may have none.
    """
    from ..open import format_for
    from ..suites.load import load_suite

    chosen = selection(expression)
    found: list[tuple[Target, tuple[AnyVector, ...]]] = []
    for target in targets:
        suite = load_suite(directory, format_for(target))
        found.append((target, tuple(vector for vector in suite if chosen(vector))))
    has_some = {target.name for target, mine in found if mine}
    for target, _ in found:
        if target.name not in has_some:
            raise no_vector_matches(expression, format_for(target).noun.removesuffix("s"))
    found = [(target, mine) for target, mine in found if mine]
    return [target for target, _ in found], [mine for _, mine in found]


def _expected_of(
    path: Path | None, targets: Sequence[Target], directory: Path | None
) -> tuple[ExpectedFailures, tuple[AnyVector, ...]] | None:
    """The file of expected failures, and the whole suite that it is about."""
    if path is None:
        return None
    from ..open import format_for
    from ..suites.load import load_suite
    from ..verdicts.expected import load_expected

    suite = tuple(v for target in targets for v in load_suite(directory, format_for(target)))
    return load_expected(path, suite), suite


def _reports(
    summary: RunReport,
    vectors: Sequence[AnyVector],
    *,
    html: Path | None,
    junit: Path | None,
    markdown: Path | None,
) -> Iterator[Callable[[], None]]:
    """What makes and writes each of the reports that were asked for."""
    if html is not None:
        from ..reports.html import run_page

        yield lambda: write_file(html, run_page(summary, vectors).encode(errors="replace"))
    if junit is not None:
        from ..reports.junit import junit_xml

        yield lambda: write_file(junit, junit_xml(summary, vectors))
    if markdown is not None:
        from ..reports.markdown import run_markdown

        yield lambda: write_file(markdown, run_markdown(summary, vectors).encode(errors="replace"))
