"""Layout: parallel degrees and rank order, to refined axes and groups of ranks.

The dense factorisation tp x cp x dp x pp and the expert one etp x ep x edp x pp both number the
same ranks. Writing both as mixed-radix digits over one common refinement (*axes*) turns every
group family into *the set of axes along which its members vary*.
"""

from __future__ import annotations

from dataclasses import dataclass

RANK_ORDERS = ("tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Parallel degrees, their rank order, and how a step is run.

    Args:
        tp, cp, ep, etp, dp, pp, vpp: degrees [1]; dp is the dense data-parallel degree, so
            gpus = tp x cp x dp x pp, and edp = tp x cp x dp / (etp x ep).
        zero_stage: 0 (plain DDP) to 3 (FSDP).
        micro_batch: sequences in one micro-batch on one data-parallel replica [1].
        global_batch: sequences of one step over all replicas [1].
        seq: sequence length [tokens].
        recompute: ``none``, ``selective`` (attention core) or ``full``.
        precision: ``bf16``, ``fp16`` or ``fp8`` of the GEMMs.
        sequence_parallel: activations between TP regions are split along the sequence.
        cp_kind: ``ring``, ``all_gather`` or ``ulysses``.
        schedule: ``1f1b`` (interleaved when vpp > 1), ``gpipe``, ``zb-h1``, ``dualpipe``.
        order: rank order in Megatron's words, innermost first.
        overlap_gradients: gradient reduction runs under the backward pass.
        overlap_parameters: ZeRO parameter gathers run under compute.
        ep_copies: ``expert`` (one copy per expert) or ``domain`` (one copy per domain, then
            forwarded inside; DeepEP style).
        dispatch_bytes: bytes of one activation element on the dispatch wire.
        combine_bytes: bytes of one activation element on the combine wire.
        parameter_bytes, gradient_bytes, optimizer_bytes: bytes per parameter of each kind.
    """

    tp: int = 1
    cp: int = 1
    ep: int = 1
    etp: int = 1
    dp: int = 1
    pp: int = 1
    vpp: int = 1
    zero_stage: int = 1
    micro_batch: int = 1
    global_batch: int = 1
    seq: int = 4096
    recompute: str = "selective"
    precision: str = "bf16"
    sequence_parallel: bool = True
    cp_kind: str = "ring"
    schedule: str = "1f1b"
    order: str = "tp-cp-ep-dp-pp"
    overlap_gradients: bool = True
    overlap_parameters: bool = True
    ep_copies: str = "expert"
    activation_bytes: int = 2
    dispatch_bytes: int = 2
    combine_bytes: int = 2
    parameter_bytes: int = 2
    gradient_bytes: int = 4
    optimizer_bytes: int = 12

    @property
    def gpus(self) -> int:
        """GPUs the layout occupies [1]."""
        return self.tp * self.cp * self.dp * self.pp

    @property
    def edp(self) -> int:
        """Expert data-parallel degree [1]."""
        return self.tp * self.cp * self.dp // (self.etp * self.ep)

    @property
    def micro_batches(self) -> int:
        """Micro-batches one replica runs in a step [1]."""
        return self.global_batch // (self.dp * self.micro_batch)
