"""Outside vectors for canonical JSON, strict decoding, HMAC-SHA256 and UUIDv7."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memory_git.domain.canonical import canonical_bytes, decode, hmac_hex
from memory_git.domain.errors import Refused
from memory_git.domain.ids import is_uuid, is_uuid7

ROOT = Path(__file__).resolve().parents[2]
VECTORS = ROOT.parent / "shared" / "vectors"

pytestmark = pytest.mark.skipif(
    not VECTORS.is_dir(), reason="the outside vectors are not here: ../shared/vectors"
)

JCS = VECTORS / "jcs-cyberphone" / "testdata"
PARSING = VECTORS / "json-parsing-nst" / "test_parsing"
WYCHEPROOF = VECTORS / "hmac-wycheproof" / "testvectors_v1" / "hmac_sha256_test.json"
OUTSIDE_I_JSON = {"y_object_duplicated_key", "y_object_duplicated_key_and_value"}


def names(folder: Path, pattern: str) -> list[str]:
    return sorted(path.stem for path in folder.glob(pattern))


@pytest.mark.parametrize("name", names(JCS / "input", "*.json"))
def test_canonical_bytes_are_those_of_rfc_8785(name: str) -> None:
    written = canonical_bytes(decode((JCS / "input" / f"{name}.json").read_bytes()))
    assert written == bytes.fromhex((JCS / "outhex" / f"{name}.txt").read_text())
    assert written == (JCS / "output" / f"{name}.json").read_bytes()


@pytest.mark.parametrize("name", names(PARSING, "y_*.json"))
def test_valid_json_is_read_unless_i_json_excludes_it(name: str) -> None:
    text = (PARSING / f"{name}.json").read_bytes()
    if name in OUTSIDE_I_JSON:
        with pytest.raises(Refused):
            decode(text)
    else:
        assert decode(text) == json.loads(text)
        assert decode(canonical_bytes(decode(text))) == decode(text)


@pytest.mark.parametrize("name", names(PARSING, "n_*.json"))
def test_invalid_json_is_refused(name: str) -> None:
    with pytest.raises(Refused) as caught:
        decode((PARSING / f"{name}.json").read_bytes())
    assert caught.value.code == "bad_json"


@pytest.mark.parametrize("name", names(PARSING, "i_*.json"))
def test_what_parsers_may_choose_is_read_or_refused_but_never_breaks(name: str) -> None:
    try:
        value = decode((PARSING / f"{name}.json").read_bytes())
    except Refused as refused:
        assert refused.code == "bad_json"
    else:
        assert canonical_bytes(value)


def rfc4231() -> list[tuple[bytes, bytes, bytes]]:
    cases = []
    fields: dict[str, str] = {}
    for line in (VECTORS / "hmac-rfc4231" / "rfc-4231-sha256.txt").read_text().splitlines():
        name, mark, value = line.partition(" = ")
        if mark and not line.startswith("#"):
            fields[name] = value
        if name == "MD":
            cases.append(tuple(bytes.fromhex(fields[key]) for key in ("Key", "Msg", "MD")))
    return cases  # type: ignore[return-value]


def test_hmac_agrees_with_rfc_4231() -> None:
    cases = rfc4231()
    assert len(cases) >= 6
    for key, message, tag in cases:
        assert hmac_hex(key, message)[: len(tag) * 2] == tag.hex()


def test_hmac_agrees_with_wycheproof_on_what_is_valid_and_what_is_not() -> None:
    counted = {"valid": 0, "invalid": 0}
    for group in json.loads(WYCHEPROOF.read_text())["testGroups"]:
        for case in group["tests"]:
            tag = hmac_hex(bytes.fromhex(case["key"]), bytes.fromhex(case["msg"]))[: group["tagSize"] // 4]
            assert (tag == case["tag"]) == (case["result"] == "valid"), case["tcId"]
            counted[case["result"]] += 1
    assert counted == {"valid": 66, "invalid": 108}


def test_the_example_of_rfc_9562_is_a_uuid7() -> None:
    example = json.loads((VECTORS / "uuidv7" / "rfc9562.json").read_text())["uuid"]
    assert is_uuid7(example)
    assert is_uuid(example)
    assert not is_uuid7(example.upper())
    assert not is_uuid7(example[:14] + "4" + example[15:])
    assert not is_uuid7(example[:19] + "c" + example[20:])
