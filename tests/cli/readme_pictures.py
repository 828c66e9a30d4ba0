"""Make the README's pictures again: ``python -m tests.cli.readme_pictures`` writes all.

The pictures of the report say what it recommends, in a text chunk of the PNG, so that a test can
tell whether the page still says the same.
"""

from __future__ import annotations

import base64
import html
import os
import re
import shlex
import struct
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from cli.planner_app import main
from tests.cli.browser import Browser, chromium

ROOT = Path(__file__).resolve().parents[2]
REPORT, CLUSTER = ROOT / "docs" / "report.png", ROOT / "docs" / "cluster.svg"
SEATS = ROOT / "docs" / "seats.png"
KEYWORD = b"Lead"
_WIDTH, _HEIGHT = 1000, 1080


def tour_commands() -> list[list[str]]:
    """Return the arguments of the commands of the README's tour that make its report."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    tour = text.partition("## Five minutes\n")[2].partition("\n## ")[0]
    block = tour.partition("```console\n")[2].partition("```")[0].replace("\\\n", " ")
    commands = [shlex.split(line[2:])[1:] for line in block.splitlines() if line.startswith("$ ")]
    return [command for command in commands if command[0] in {"place", "report"}]


def make_report(folder: Path) -> Path:
    """Run the tour in *folder* and return its report."""
    here = Path.cwd()
    os.chdir(folder)
    try:
        for command in tour_commands():
            if main([*command, "--json"] if command[0] == "place" else command) != 0:
                raise RuntimeError(f"planner {shlex.join(command)} failed")
    finally:
        os.chdir(here)
    return folder / "report.html"


def lead_of(page: str) -> str:
    """Return the recommendation of a report."""
    return " ".join(map(html.unescape, re.findall(r'<p class="lead">(.*?)</p>', page)))


def chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield kind and content of every chunk of a PNG."""
    at = 8
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        yield png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        at += 12 + length


def lead_in(png: bytes) -> str:
    """Return the recommendation that a picture says it shows."""
    texts = [body for kind, body in chunks(png) if kind == b"tEXt"]
    found = [body for body in texts if body.startswith(KEYWORD + b"\0")]
    return found[0].partition(b"\0")[2].decode("latin-1") if found else ""


def with_lead(png: bytes, lead: str) -> bytes:
    """Return *png* with *lead* in a text chunk before its end."""
    body = b"tEXt" + KEYWORD + b"\0" + lead.encode("latin-1", "replace")
    chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    end = png.rindex(b"IEND") - 4
    return png[:end] + chunk + png[end:]


def pictures_of(page: Path, profile: Path) -> tuple[bytes, bytes]:
    """Return the top of a page, and the first plan's seats with its experts lit, as PNG."""
    program = chromium()
    if program is None:
        raise RuntimeError("no Chromium on this machine")
    browser = Browser(profile, program)
    try:
        browser.send("Emulation.setDeviceMetricsOverride", width=_WIDTH, height=_HEIGHT,
                     deviceScaleFactor=1, mobile=False)  # fmt: skip
        browser.open(page)
        top = browser.send("Page.captureScreenshot", format="png")
        browser.value("document.querySelector('.lit-c').click()")
        y = browser.value(
            "document.querySelector('#seats-0').getBoundingClientRect().top + scrollY"
        )
        foot = browser.value(
            "document.querySelector('.seats').getBoundingClientRect().bottom + scrollY"
        )
        clip = {"x": 0, "y": y, "width": _WIDTH, "height": foot - y + 8, "scale": 1}
        seats = browser.send(
            "Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip
        )
    finally:
        browser.close()
    return base64.b64decode(top["data"]), base64.b64decode(seats["data"])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        made = make_report(Path(name))
        lead = lead_of(made.read_text(encoding="utf-8"))
        for path, picture in zip(
            (REPORT, SEATS), pictures_of(made, Path(name) / "profile"), strict=True
        ):
            path.write_bytes(with_lead(picture, lead))
    main(["topology", "draw", "llama3-roce", "--out", str(CLUSTER)])
