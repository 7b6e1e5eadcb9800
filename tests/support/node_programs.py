"""Outside programs of the Node world, in pinned versions, fetched once into a folder of this machine's temporary files."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

LEAST_NODE = (22, 19)


@dataclass
class NodeProgram:
    """A script of an installed package, and the Node that runs it."""

    node: str
    folder: Path
    script: Path

    def environment(self, **more: str) -> dict[str, str]:
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        path = f"{Path(self.node).parent}:{os.environ['PATH']}"
        return {**os.environ, "HOME": str(home), "PATH": path, **more}

    def __call__(
        self, *arguments: str, timeout_s: float = 120, **more: str
    ) -> subprocess.CompletedProcess[str]:
        command = [self.node, str(self.script), *arguments]
        return subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            env=self.environment(**more),
            timeout=timeout_s,
        )


def installed(script: str, *packages: str) -> NodeProgram:
    """Gives a program whose script stands under node_modules, after installing `name@version`s; skips where there is no Node."""
    node = _node()
    if node is None:
        pytest.skip("no Node of version 22.19 or newer: `make test-all` brings one")
    name = re.sub(r"[^a-z0-9.]+", "-", "-".join(packages).lower()).strip("-")
    folder = Path(tempfile.gettempdir()) / f"memory-git-{name}"
    if not (folder / "node_modules" / script).exists():
        _install(node, folder, packages)
    return NodeProgram(node, folder, folder / "node_modules" / script)


def _node() -> str | None:
    """Gives a Node that is new enough: the virtual environment's, else that of the PATH."""
    for path in (shutil.which("node", path=str(Path(sys.executable).parent)), shutil.which("node")):
        told = (
            subprocess.run([path, "--version"], check=False, capture_output=True, text=True).stdout
            if path
            else ""
        )
        found = re.match(r"v(\d+)\.(\d+)\.", told)
        if found and (int(found[1]), int(found[2])) >= LEAST_NODE:
            return path
    return None


def _install(node: str, folder: Path, packages: tuple[str, ...]) -> None:
    npm = shutil.which("npm", path=f"{Path(node).parent}:{os.environ['PATH']}")
    if npm is None:
        pytest.skip("Node is here, but npm is not")
    with tempfile.TemporaryDirectory(prefix="memory-git-npm-") as made:
        command = [npm, "install", "--no-audit", "--no-fund", "--silent", "--prefix", made, *packages]
        environment = {**os.environ, "PATH": f"{Path(node).parent}:{os.environ['PATH']}"}
        done = subprocess.run(
            command, check=False, cwd=made, capture_output=True, text=True, timeout=300, env=environment
        )
        if done.returncode:
            pytest.skip(f"npm could not fetch {', '.join(packages)}: {done.stderr[-300:]}")
        if not folder.exists():
            shutil.move(made, folder)
            Path(made).mkdir()
