"""The frame of a page of ours: one file, no network, light and dark, readable on a phone."""

from __future__ import annotations

from html import escape

__all__ = ["document", "element", "options"]


def element(tag: str, content: str = "", **attributes: str) -> str:
    """An element around markup. `content` is markup; attribute values are escaped here.

    A trailing underscore is dropped from an attribute's name, and others become hyphens.
    """
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for name, value in attributes.items()
    )
    return f"<{tag}{written}>{content}</{tag}>"


def options(name: str, label: str, values: dict[str, str]) -> str:
    """A labelled choice among values, each with what it is called."""
    items = "".join(element("option", escape(says), value=v) for v, says in values.items())
    return element("label", escape(label) + " " + element("select", items, name=name))


def document(title: str, body: str, script: str = "") -> str:
    """The whole page."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n<script>{script}</script>\n</body>\n</html>\n"
    )


_STYLE = """
:root {
  --back: #fff; --panel: #f6f7f9; --text: #1b1f24; --soft: #59636e; --line: #d5dae0;
  --good: #1a7f37; --bad: #c1121f; --warn: #8a5a00; --bad-back: #fff0f0; --good-back: #eaf7ed;
  --warn-back: #fff6e0; --chip: #e3ebf6; --link: #0a58ca;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #0f1216; --panel: #181c22; --text: #e4e8ed; --soft: #9aa5b1; --line: #333b45;
    --good: #5fd07a; --bad: #ff7b7b; --warn: #e5b454; --bad-back: #35171a; --good-back: #14291a;
    --warn-back: #33270f; --chip: #26344a; --link: #79b0ff;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
main { max-width: 70rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .25rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
h3 { font-size: 1rem; margin: 0; overflow-wrap: anywhere; }
p { margin: .35rem 0; }
a { color: var(--link); }
code, pre, .call { font-family: ui-monospace, monospace; font-size: .85rem; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .5rem 0; padding: .6rem;
  background: var(--panel); border-radius: .4rem; }
.soft { color: var(--soft); font-size: .9rem; overflow-wrap: anywhere; }
.good { color: var(--good); } .bad { color: var(--bad); } .warn { color: var(--warn); }
.scroll { overflow-x: auto; }
.decision { border-left: .3rem solid var(--bad); padding: .1rem 0 .1rem .8rem; margin: .6rem 0; }
table { border-collapse: collapse; font-size: .9rem; overflow-wrap: normal; }
th, td { text-align: left; padding: .25rem .7rem .25rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
th.number { max-width: 12rem; overflow-wrap: anywhere; }
.filters { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center;
  margin: .5rem 0 1rem; }
.filters label { display: flex; gap: .4rem; align-items: center; min-width: 0;
  max-width: 100%; overflow-wrap: normal; }
select, input, button { min-width: 0; font: inherit; font-size: .9rem; color: var(--text);
  background: var(--panel); border: 1px solid var(--line); border-radius: .4rem;
  padding: .3rem .5rem; max-width: 100%; }
button { cursor: pointer; }
article { border: 1px solid var(--line); border-left: .3rem solid var(--line); border-radius: .5rem;
  padding: .8rem 1rem; margin: 0 0 1rem; }
article.fail, article.error, article.xpass { border-left-color: var(--bad); }
article.xfail { border-left-color: var(--warn); }
[hidden] { display: none !important; }
.lanes { margin: .7rem 0; border: 1px solid var(--line); border-radius: .4rem; overflow: hidden; }
.step, .heads { display: grid;
  grid-template-columns: minmax(0, 2fr) minmax(0, 1fr) minmax(0, 1fr); }
.step { border-top: 1px solid var(--line); }
.step > div, .heads > div { padding: .4rem .6rem; min-width: 0; }
.step > div + div, .heads > div + div { border-left: 1px solid var(--line); }
.heads { background: var(--panel); color: var(--soft); font-size: .85rem; }
.call { overflow-wrap: anywhere; }
tr.broken td { background: var(--bad-back); }
.step.broken { background: var(--bad-back); box-shadow: inset .25rem 0 0 var(--bad); }
.chip { display: inline-block; background: var(--chip); border-radius: .3rem; padding: 0 .4rem;
  margin: 0 .25rem .2rem 0; font-size: .85rem; overflow-wrap: anywhere; }
.chip.idle { background: none; outline: 1px dashed var(--soft); outline-offset: -1px; }
.own { border-top: 1px dashed var(--line); margin-top: .3rem; }
.chip.lost { background: var(--bad); color: var(--back); text-decoration: line-through; }
.chip.surplus { background: var(--bad); color: var(--back); }
.copy { display: flex; gap: .5rem; align-items: flex-start; }
.copy pre { flex: 1; margin: 0; min-width: 0; }
.cell-good { background: var(--good-back); color: var(--good); }
.cell-bad { background: var(--bad-back); color: var(--bad); font-weight: 600; }
.cell-warn { background: var(--warn-back); color: var(--warn); }
.cell-none { color: var(--soft); }
.matrix td, .matrix th { padding: .2rem .5rem; text-align: center; white-space: nowrap; }
.matrix td:first-child, .matrix th:first-child { text-align: left; position: sticky; left: 0;
  background: var(--back); }
.matrix td.reason { text-align: left; white-space: normal; color: var(--soft); }
@media (max-width: 40rem) {
  .step, .heads { grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); }
  .step > div:first-child { grid-column: 1 / -1; }
  .heads > div:first-child { display: none; }
  .step > div + div, .heads > div + div { border-left: 0; }
  .step > div + div + div, .heads > div + div + div { border-left: 1px solid var(--line); }
  .step > div:first-child { padding-bottom: 0; }
}
"""
