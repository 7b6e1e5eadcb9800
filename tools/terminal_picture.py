"""Runs a command and writes what it printed as an SVG picture: `python tools/terminal_picture.py OUT.svg COMMAND [ARGUMENT …]`."""

from __future__ import annotations

import io
import shlex
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

WIDTH = 112
# rich's own form loads a font from elsewhere; a picture must not.
FORM = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: system-ui, sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def main() -> int:
    """Writes the picture and gives the command's exit code."""
    out, *command = sys.argv[1:]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    for line in done.stdout.splitlines():
        mark, rest = line[:1], line[1:]
        style = {"✓": "green", "✗": "red"}.get(mark)
        console.print(Text(mark, style=style or "") + Text(rest) if style else Text(line), soft_wrap=False)
    title = shlex.join([Path(command[0]).name, *command[1:]])
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    Path(out).write_text(console.export_svg(title=title, code_format=FORM), encoding="utf-8")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
