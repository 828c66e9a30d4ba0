"""What files suffer on their way to us: keys twice, blocks reordered, other encodings, bombs."""

from __future__ import annotations

import random
import re

NESTED = (
    "[" * 300 + "]" * 300, '{"a":' * 300 + "1" + "}" * 300, "<pci>" * 300 + "</pci>" * 300,
    "- " * 300 + "x", "((((" * 100, "${A:-" * 200 + "}" * 200, "switch{" * 50 + "}" * 50,
)  # fmt: skip
BOMB = "x: &a0 [y, y]\n" + "".join(f"x{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 40))
MERGED = "x: &a0 {y: 1}\n" + "".join(f"x{i}: &a{i} {{<<: [*a{i - 1}, *a{i - 1}]}}\n"
                                     for i in range(1, 30))  # fmt: skip
ENCODINGS = ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "utf-8-sig", "cp037", "utf-7")


def restructured(text: str, draw: random.Random) -> str:
    """Return *text* with a key, a line or a block twice, moved, or nested too deep."""
    lines = text.splitlines(keepends=True)
    if not lines:
        return text
    at, to = draw.randrange(len(lines)), draw.randrange(len(lines) + 1)
    change = draw.randrange(7)
    if change == 0:  # a key twice, with its value or another line's
        lines.insert(to, lines[at])
    elif change == 1:  # blocks reordered: a block is a line without indent and what hangs on it
        blocks = re.findall(r"^\S[^\n]*\n?(?:[ \t]+[^\n]*\n?|\n)*", text, re.MULTILINE)
        draw.shuffle(blocks)
        return "".join(blocks)
    elif change == 2:  # a pair of a mapping twice on one line
        pairs = re.findall(r'"?\w+"?\s*[:=]\s*[^,\s{}\[\]]+', lines[at])
        pair = draw.choice(pairs or ["a: 1"])
        lines[at] = lines[at].replace(pair, f"{pair}, {pair}", 1)
    elif change == 3:
        lines[at] = draw.choice(NESTED) + lines[at]
    elif change == 4:
        lines.insert(to, draw.choice((BOMB, MERGED)))
    elif change == 5:  # another indent
        lines[at] = draw.choice(("", " ", "   ", "\t", "        ")) + lines[at].lstrip()
    else:  # one line of everything, or a line for each word
        text = "".join(lines)
        return (
            text.replace("\n", draw.choice((" ", ", ", ""))) if at % 2 else text.replace(" ", "\n")
        )
    return "".join(lines)


def encoded(text: str, draw: random.Random) -> bytes:
    """Return *text* as UTF-8, or in another encoding, or with bytes that are no text."""
    change = draw.randrange(5)
    content = text.encode("utf-8", errors="replace")
    if change == 0:
        return text.encode(draw.choice(ENCODINGS), errors="replace")
    if change == 1:
        at = draw.randrange(len(content) + 1)
        odd = draw.choice((b"\x00", b"\x00" * 4096, b"\xff\xfe", b"\xc3", b"\x1a", b"\x0c", b"\r"))
        return content[:at] + odd + content[at:]
    return content
