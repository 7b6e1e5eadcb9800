"""How the git peers hold memories: one blob each, in 256 folders by the digest of its id; the base is one pack.

More, smaller folders write less a commit but more objects, each with a sync: 256 was the fastest at 100k.
"""

from __future__ import annotations

import subprocess
from hashlib import sha256
from pathlib import Path

from bench import records, shape

IDENTITY = "bench <bench@localhost> 1700000000 +0000"


def shard(memory_id: str) -> str:
    """Gives the folder of a memory."""
    return sha256(memory_id.encode()).hexdigest()[:2]


def path_of(memory_id: str) -> str:
    """Gives the path of a memory."""
    return f"{shard(memory_id)}/{memory_id}"


def run(folder: Path, *arguments: str, given: bytes | None = None) -> str:
    """Gives what git prints; raises when it fails."""
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], input=given, capture_output=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"git {arguments[0]}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout.decode().strip()


def version() -> str:
    """Names the git program."""
    return run(Path(), "version").replace(" version", "")


def settle(folder: Path) -> None:
    """Moves everything to the disk that was written without a sync, before a clock starts."""
    subprocess.run(["sync", "-f", str(folder)], check=True)


def make(folder: Path) -> None:
    """Makes a bare repository that syncs whatever it writes."""
    run(folder, "init", "--quiet", "--bare", "--initial-branch=main")
    for name, value in (
        ("core.fsync", "all"),
        ("core.fsyncMethod", "fsync"),
        ("core.fsyncObjectFiles", "true"),
        ("gc.auto", "0"),
        ("user.name", "bench"),
        ("user.email", "bench@localhost"),
    ):
        run(folder, "config", name, value)


def fill(folder: Path, count: int) -> None:
    """Makes a repository whose main branch holds so many memories, by fast-import."""
    make(folder)
    blobs = b"".join(
        _said("blob", text, f"mark :{number + 1}")
        for number in range(count)
        for text in [records.content(number).encode()]
    )
    files = "".join(
        f"M 100644 :{number + 1} {path_of(records.memory_id(number))}\n" for number in range(count)
    )
    head = b"commit refs/heads/main\ncommitter " + IDENTITY.encode() + b"\ndata 4\nbase\n"
    run(folder, "fast-import", "--quiet", given=blobs + head + files.encode() + b"\n")
    run(folder, "pack-refs", "--all")


def _said(what: str, text: bytes, mark: str) -> bytes:
    return f"{what}\n{mark}\ndata {len(text)}\n".encode() + text + b"\n"


def fill_history(folder: Path, changesets: int) -> dict[str, int]:
    """Makes the commits of `shape.history`, all with one tree, and a branch `place-N` at each place that is named there."""
    make(folder)
    plan = shape.history(changesets)
    lines = [
        f"commit refs/heads/all\nmark :1\ncommitter {IDENTITY}\ndata 4\nroot\nM 100644 inline a\ndata 1\na\n"
    ]
    for wave in plan.waves:
        for commit in wave:
            first, *rest = (f":{place + 1}" for place in commit.parents)
            merges = "".join(f"merge {parent}\n" for parent in rest)
            lines.append(
                f"commit refs/heads/all\nmark :{commit.place + 1}\ncommitter {_at(commit.place)}\n"
                f"data 4\nwork\nfrom {first}\n{merges}\n"
            )
    named = "".join(f"reset refs/heads/place-{place}\nfrom :{place + 1}\n" for place in plan.named.values())
    given = ("".join(lines) + named).encode()
    run(folder, "fast-import", "--quiet", "--force", f"--export-marks={folder / 'marks'}", given=given)
    return plan.named


def _at(place: int) -> str:
    return f"bench <bench@localhost> {1_700_000_000 + place} +0000"
