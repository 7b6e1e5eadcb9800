"""THREATS.md names tests that there are; each attack of its last table is tried, and refused with the code that it says."""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from test_attack_codes import PROPOSALS, TOKENS

ROOT = Path(__file__).parents[2]
THREATS = (ROOT / "THREATS.md").read_text("utf-8")
LEAST_ATTACKS = 60


def rows_of(text: str) -> list[list[str]]:
    """Gives the cells of the rows of all tables in a text, less their heads."""
    lines = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| attack")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def attacks() -> list[list[str]]:
    return rows_of(THREATS.split("## Attacks tried")[1].split("\n## ")[0])


def known_tests() -> dict[str, str]:
    """Gives every test's name with the text of its file."""
    return {
        name: text
        for path in (ROOT / "tests").rglob("test_*.py")
        for text in [path.read_text("utf-8")]
        for name in re.findall(r"^(?:async )?def (test_\w+)", text, re.MULTILINE)
    }


def test_each_test_that_the_threats_name_is_there() -> None:
    named = set(re.findall(r"`(test_\w+)`", THREATS))
    assert named - known_tests().keys() == set()
    assert len(named) > 60


def test_each_row_of_the_threats_has_a_check_and_a_test() -> None:
    bare = [cells for cells in rows_of(THREATS) if len(cells) != 4 or "`test_" not in cells[3]]
    assert bare == []


def test_at_least_sixty_attacks_are_listed_each_once_and_each_with_a_documented_code() -> None:
    found = attacks()
    assert len(found) >= LEAST_ATTACKS
    assert len({(kind, what) for kind, what, _, _ in found}) == len(found)
    assert {kind for kind, *_ in found} == {"envelope", "token", "proposal"}
    documented = (ROOT / "docs" / "ERRORS.md").read_text("utf-8")
    assert [row for row in found if f"| {row[2]} |" not in documented] == []


def test_each_attack_is_tried_by_its_test_and_refused_with_its_code() -> None:
    texts = known_tests()
    for _, _, code, test in attacks():
        assert code.strip("`") in texts[test.strip("`")], (code, test)
    tried = {
        ("token", "test_an_attack_on_a_token_is_refused_with_its_code"): TOKENS,
        ("proposal", "test_an_attack_on_a_proposal_is_refused_with_its_code"): PROPOSALS,
    }
    for (kind, test), table in tried.items():
        listed = {what: code for of, what, code, by in attacks() if of == kind and by == f"`{test}`"}
        assert listed == {what: f"`{code}`" for what, (_, code) in table.items()}
