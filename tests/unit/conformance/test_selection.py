from __future__ import annotations

import pytest

from mmcache_conformance.suites.select import SelectionError, parse_selection
from mmcache_vectors.manager import Vector

CREDIT, NOTICE = "encoder-decoder-credit", "encoder-decoder-notice"


@pytest.mark.parametrize(
    ("expression", "chosen"),
    [
        ("L1", ["evicted-and-allocated-again"]),
        ("l1", ["evicted-and-allocated-again"]),
        ("L10", ["reset-while-referenced"]),
        ("L2 or E1", ["evicted-and-allocated-again", CREDIT]),
        ("encoder_decoder", [CREDIT, NOTICE]),
        ("encoder_decoder and not E1", [NOTICE]),
        ("not (L1 or L7 or L8 or L10 or L3)", [CREDIT, NOTICE]),
        ("not not E1", [CREDIT]),
        ("E1 or E2 and L1", [CREDIT]),
        ("(E1 or E2) and encoder_decoder", [CREDIT, NOTICE]),
        ("FIRST_OCCURRENCE", ["one-hash-twice"]),
        ("admission_is_exact", ["admission"]),
        ("credit_once", [CREDIT]),
        ("twice", ["one-hash-twice"]),
        ("L99", []),
    ],
)
def test_chooses(expression: str, chosen: list[str], hand_made: dict[str, Vector]) -> None:
    selects = parse_selection(expression)
    assert [name for name, vector in hand_made.items() if selects(vector)] == chosen


def test_an_id_chooses_its_vector(hand_made: dict[str, Vector]) -> None:
    for vector in hand_made.values():
        selects = parse_selection(vector.id)
        assert [v for v in hand_made.values() if selects(v)] == [vector]


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("", "expected a word, 'not' or '(' at column 1"),
        ("   ", "expected a word, 'not' or '(' at column 4"),
        ("L1 and", "expected a word, 'not' or '(' at column 7"),
        ("and L1", "expected a word, 'not' or '(' at column 1"),
        ("not", "expected a word, 'not' or '(' at column 4"),
        ("(L1", "expected ')' at column 4"),
        ("L1)", "expected 'and', 'or' or the end at column 3"),
        ("L1 L2", "expected 'and', 'or' or the end at column 4"),
        ("()", "expected a word, 'not' or '(' at column 2"),
        ("(" * 5000 + "L1" + ")" * 5000, "more than 100"),
        ("not " * 5000 + "L1", "more than 100"),
    ],
)
def test_says_where_it_is_wrong(expression: str, reason: str) -> None:
    with pytest.raises(SelectionError) as caught:
        parse_selection(expression)
    assert reason in str(caught.value)


def test_the_deepest_expression_can_be_evaluated(hand_made: dict[str, Vector]) -> None:
    selects = parse_selection("(" * 100 + "L1" + ")" * 100)
    assert [name for name, v in hand_made.items() if selects(v)] == ["evicted-and-allocated-again"]
