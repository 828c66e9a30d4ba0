"""The version, in one place: the package metadata and every document read it from here."""

from __future__ import annotations

__version__ = "0.1.0"
