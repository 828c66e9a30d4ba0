"""SI constants, and text to SI and back.

The core knows seconds, bytes, bytes/s, FLOP/s and watts only. These constants turn literals into
SI; ``parse_*`` turns a user's text into SI and refuses what is ambiguous: KB is 1000 bytes and
KiB is 1024, ``Gb`` is bits and ``GB`` is bytes, and neither is ever guessed.
"""

from __future__ import annotations

NS = 1e-9
US = 1e-6
MS = 1e-3

KB, MB, GB, TB = 1e3, 1e6, 1e9, 1e12
KIB, MIB, GIB, TIB = 1024.0, 1024.0**2, 1024.0**3, 1024.0**4

GBIT_PER_S = 1e9 / 8
TFLOPS = 1e12
