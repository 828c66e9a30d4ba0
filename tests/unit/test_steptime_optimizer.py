"""The optimizer's update by the bytes that Adam reads and writes, counted by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.layout import Layout
from planner.steptime.columns import columns_of
from planner.steptime.optimizer import update_bytes_per_parameter


def test_adam_in_mixed_precision_moves_34_bytes_a_parameter_with_the_norm() -> None:
    columns = replace(columns_of(Layout()), gradient_bytes=4.0)

    # master, two moments read and written (24), gradient read (4), and for its norm (4), weight (2)
    assert update_bytes_per_parameter(columns) == pytest.approx(34)


def test_a_scaled_loss_in_fp16_copies_checks_and_clips_its_gradients() -> None:
    wide = replace(columns_of(Layout()), gradient_bytes=2.0)
    scaled = replace(wide, precision=1.0)

    # copied to FP32 (2 + 4), unscaled (8), clipped (8); Adam and the norm then read 4 instead of
    # 2 bytes once: what 16-bit gradients cost without is already counted as 2 + 2
    more = update_bytes_per_parameter(scaled) - update_bytes_per_parameter(wide)
    assert more == pytest.approx(6 + 8 + 8 - 2)
