"""Secrets stand in files of their own that nobody else can read."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_git.charon.keys import KEY_NAMES, Keys, new_key
from memory_git.domain.envelope import MergeKeys
from memory_git.domain.errors import Unavailable


def test_the_first_start_makes_five_different_secrets_for_the_owner_alone(tmp_path: Path) -> None:
    keys = Keys(tmp_path / "keys")
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "keys").iterdir()}
    assert modes == dict.fromkeys(KEY_NAMES, 0o600)
    assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o700
    secrets = {
        keys.lethe_api,
        *(ring.secrets[0][1] for ring in (keys.merge, keys.token, keys.oauth, keys.ledger)),
    }
    assert len(secrets) == 5
    assert min(map(len, secrets)) == 64


def test_the_second_start_finds_the_same_secrets(tmp_path: Path) -> None:
    one, other = Keys(tmp_path), Keys(tmp_path)
    assert [one.ring(name) for name in KEY_NAMES] == [other.ring(name) for name in KEY_NAMES]


@pytest.mark.parametrize("name", KEY_NAMES)
def test_a_file_that_others_can_read_is_refused(tmp_path: Path, name: str) -> None:
    secret = Keys(tmp_path).lethe_api
    (tmp_path / name).chmod(0o640)
    with pytest.raises(Unavailable) as refused:
        Keys(tmp_path)
    assert refused.value.code == "key_not_private"
    assert secret not in refused.value.message


@pytest.mark.parametrize(
    "text",
    [
        "",
        "short=abc\n",
        "no mark here that is long enough to be a secret\n",
        "a=" + "x" * 32 + "\na=" + "y" * 32,
    ],
)
def test_a_damaged_file_is_refused_and_not_replaced(tmp_path: Path, text: str) -> None:
    Keys(tmp_path)
    (tmp_path / "token").write_text(text)
    with pytest.raises(Unavailable) as refused:
        Keys(tmp_path)
    assert refused.value.code == "key_damaged"
    assert (tmp_path / "token").read_text() == text


def test_the_first_line_signs_and_every_line_verifies(tmp_path: Path) -> None:
    old = Keys(tmp_path).token.secrets[0]
    (tmp_path / "token").write_text(f"new={'n' * 64}\n{old[0]}={old[1]}\n")
    ring = Keys(tmp_path).token
    assert ring.signing_key_id == "new"
    assert ring.secret(old[0]) == old[1].encode()


def test_secrets_show_in_no_representation(tmp_path: Path) -> None:
    keys = Keys(tmp_path)
    assert keys.lethe_api not in f"{keys!r} {keys} {keys.token!r}"


def test_two_keys_of_one_folder_see_a_rotation_at_once_and_nobody_is_locked_out(tmp_path: Path) -> None:
    here, there = Keys(tmp_path), Keys(tmp_path)
    old = there.token.signing_key_id
    new = here.replace("token", lambda ring: MergeKeys((new_key(), *ring.secrets))).signing_key_id
    assert [key_id for key_id, _ in there.token.secrets] == [new, old]
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_damaged_while_it_is_in_use_counts_as_it_was(tmp_path: Path) -> None:
    keys = Keys(tmp_path)
    old = keys.token.signing_key_id
    (tmp_path / "token").write_text("no key")
    assert keys.token.signing_key_id == old
    with pytest.raises(Unavailable):
        Keys(tmp_path)
