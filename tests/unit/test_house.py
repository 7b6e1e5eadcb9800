"""The house itself: what the import contracts can see."""

from __future__ import annotations

from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "memory_git"


def test_every_folder_of_the_source_is_a_package_or_the_import_contracts_would_not_see_it() -> None:
    folders = {path.parent for path in SOURCE.rglob("*.py")}
    assert SOURCE / "domain" in folders
    assert sorted(str(folder) for folder in folders if not (folder / "__init__.py").exists()) == []
