"""The forms of ids and names (3-model, ids and names)."""

from __future__ import annotations

import pytest

from memory_git.domain.errors import Invalid
from memory_git.domain.ids import (
    check_project_id,
    is_component,
    is_digest,
    is_memory_id,
    is_uuid,
    is_uuid7,
    parse_ref,
)

PROJECTS = {
    "one letter": ("a", True),
    "starts with a digit": ("7even", True),
    "dots, hyphens, underscores": ("a.b-c_d", True),
    "128 characters": ("a" * 128, True),
    "129 characters": ("a" * 129, False),
    "empty": ("", False),
    "upper case": ("Shop", False),
    "starts with a dot": (".shop", False),
    "starts with a hyphen": ("-shop", False),
    "a slash": ("a/b", False),
    "a line feed at the end": ("shop\n", False),
    "letters beyond ASCII": ("caf\u00e9", False),
    "reserved: projects": ("projects", False),
    "reserved: changesets": ("changesets", False),
    "reserved: manifests": ("manifests", False),
    "a star is no project": ("*", False),
    "not a string": (7, False),
}

REFS = {
    "accepted memory": ("refs/shared/main", "shared", "main"),
    "an agent's branch": ("refs/agents/builder/main", "agents", "builder"),
    "a session": ("refs/sessions/builder/s-1", "sessions", "builder"),
    "a topic": ("refs/topics/billing", "topics", "billing"),
    "a code workspace": ("refs/repos/shop/feature", "repos", "shop"),
    "a proposal": (
        "refs/proposals/0190a0b0-0000-7000-8000-000000000000",
        "proposals",
        "0190a0b0-0000-7000-8000-000000000000",
    ),
    "all characters of a component": ("refs/topics/A1._@+-z", "topics", "A1._@+-z"),
}

BAD_REFS = {
    "empty": "",
    "not a string": None,
    "no refs/": "heads/main",
    "an unknown space": "refs/heads/main",
    "nothing below shared": "refs/shared",
    "an empty component": "refs/shared/",
    "too many components": "refs/shared/a/b",
    "too few components": "refs/agents/builder",
    "an empty actor": "refs/agents//main",
    "two dots": "refs/shared/a..b",
    "up a folder": "refs/agents/../main",
    "ends in .lock": "refs/shared/main.lock",
    "starts with a dot": "refs/shared/.main",
    "starts with a hyphen": "refs/shared/-main",
    "a space": "refs/shared/my main",
    "a line feed": "refs/shared/main\n",
    "a NUL": "refs/shared/ma\0in",
    "beyond ASCII": "refs/shared/h\u00e4user",
    "a lone surrogate": "refs/shared/\ud800",
    "129 characters in a component": "refs/shared/" + "a" * 129,
    "upper-case space": "refs/Shared/main",
}

MEMORY_IDS = {
    "a UUID": ("0190a0b0-0000-7000-8000-000000000000", True),
    "a key with a slash": ("user/prefers-tabs", True),
    "any script": ("\u9879\u76ee/\u7d4c\u8def", True),
    "spaces": ("my key", True),
    "1,024 ASCII bytes": ("a" * 1024, True),
    "1,025 ASCII bytes": ("a" * 1025, False),
    "1,024 bytes in three-byte characters and one": ("\u6771" * 341 + "a", True),
    "1,026 bytes in three-byte characters": ("\u6771" * 342, False),
    "empty": ("", False),
    "a line feed": ("a\nb", False),
    "a NUL": ("a\0b", False),
    "DEL": ("a\x7f", False),
    "a C1 control": ("a\x85", False),
    "a lone surrogate": ("a\ud800", False),
    "not a string": (7, False),
    "null": (None, False),
}

DIGITS = {
    "a UUIDv7": ("0190a0b0-0000-7000-8000-000000000000", True, True),
    "a UUIDv4": ("6f9619ff-8b86-4011-b42d-00c04fc964ff", True, False),
    "a UUIDv7 of a wrong variant": ("0190a0b0-0000-7000-c000-000000000000", True, False),
    "upper case": ("0190A0B0-0000-7000-8000-000000000000", False, False),
    "braces": ("{0190a0b0-0000-7000-8000-000000000000}", False, False),
    "a line feed at the end": ("0190a0b0-0000-7000-8000-000000000000\n", False, False),
    "a number": (1, False, False),
}

DIGESTS = {
    "64 lower-case hex digits": ("0" * 63 + "f", True),
    "upper case": ("0" * 63 + "F", False),
    "63 digits": ("0" * 63, False),
    "65 digits": ("0" * 65, False),
    "a line feed at the end": ("0" * 64 + "\n", False),
    "bytes": (b"0" * 64, False),
}


@pytest.mark.parametrize(("name", "good"), PROJECTS.values(), ids=PROJECTS.keys())
def test_a_project_id_is_given_back_or_refused(name: object, good: bool):
    if good:
        assert check_project_id(name) == name
    else:
        with pytest.raises(Invalid) as refused:
            check_project_id(name)
        assert refused.value.code == "bad_project_id"


@pytest.mark.parametrize(("name", "space", "owner"), REFS.values(), ids=REFS.keys())
def test_a_ref_says_its_space_and_its_owner(name: str, space: str, owner: str):
    ref = parse_ref(name)
    assert (ref.name, ref.space, ref.owner) == (name, space, owner)
    assert ref.is_protected_by_name == (space == "shared")


@pytest.mark.parametrize("name", BAD_REFS.values(), ids=BAD_REFS.keys())
def test_a_bad_ref_name_is_refused(name: object):
    with pytest.raises(Invalid) as refused:
        parse_ref(name)
    assert refused.value.code == "bad_ref_name"


def test_a_ref_name_may_have_every_length_that_its_components_allow_up_to_512_bytes():
    assert len(parse_ref("refs/repos/" + "a" * 128 + "/" + "b" * 128).name) == 268
    with pytest.raises(Invalid, match="512 bytes"):
        parse_ref("refs/topics/" + "a" * 501)


def test_a_component_may_not_hold_a_slash():
    assert is_component("builder")
    assert not is_component("a/b")
    assert not is_component(7)


@pytest.mark.parametrize(("text", "good"), MEMORY_IDS.values(), ids=MEMORY_IDS.keys())
def test_a_memory_id_is_any_short_text_without_controls(text: object, good: bool):
    assert is_memory_id(text) is good


@pytest.mark.parametrize(("text", "any_version", "seven"), DIGITS.values(), ids=DIGITS.keys())
def test_a_uuid_is_lower_case_and_its_version_counts(text: object, any_version: bool, seven: bool):
    assert (is_uuid(text), is_uuid7(text)) == (any_version, seven)


@pytest.mark.parametrize(("text", "good"), DIGESTS.values(), ids=DIGESTS.keys())
def test_a_digest_is_64_lower_case_hex_digits(text: object, good: bool):
    assert is_digest(text) is good
