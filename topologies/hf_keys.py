"""One value of a Hugging Face config under the many names it goes by.

Class after class has its own key for the same thing (``n_layer``, ``num_hidden_layers``,
``n_layers``). ``HfKeys`` reads the first that is there, and refuses a file in which two of them
disagree. A key whose value is null counts as absent: that is how these files say *default*.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from planner.documents import Node
from topologies.hf_class_numbers import default_source
from topologies.hf_nested_shapes import NESTED_SHAPES
from topologies.pattern_text import MOST_ENTRIES

MOST = 10**9


@dataclass(frozen=True, slots=True)
class HfKeys:
    """Reader of the part of a config that describes the language model.

    Args:
        part: the mapping with the model's keys (``text_config`` of a multimodal file).
        whole: the outermost mapping, where ``tie_word_embeddings`` may sit instead.
        assumed: what was not stated, name to reason; filled as the reading goes.
        asked: names of keys that were looked for; filled as the reading goes.
    """

    part: Node
    whole: Node
    assumed: dict[str, str] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)

    def has(self, *aliases: str) -> bool:
        """Return whether one of *aliases* has a value other than null."""
        return next(self._places(aliases), None) is not None

    def name_of(self, *aliases: str) -> str:
        """Return which of *aliases* is there, the first if none is."""
        return next((alias for alias, _, _ in self._places(aliases)), aliases[0])

    def node(self, *aliases: str) -> Node | None:
        """Return the value of the first of *aliases* that is there, whatever it is."""
        for _, holder, key in self._places(aliases):
            return holder.optional(key)
        return None

    def count(
        self, *aliases: str, default: int | None = None, minimum: int = 1, maximum: int = MOST
    ) -> int:
        """Return a whole number; without *default* a missing one is a fault.

        A list of one repeated number stands for that number (Hunyuan gives one a layer).
        """
        found: dict[str, int] = {}
        for alias, holder, key in self._places(aliases):
            node = holder.optional(key)
            if node is not None and node.kind == "list":
                found[alias] = _repeated(holder, key, node, minimum, maximum)
            else:
                found[alias] = holder.count(key, minimum=minimum, maximum=maximum)
        if not found:
            if default is None:
                self.missing(*aliases)
            return default or 0
        first, *others = found
        for other in others:
            if found[other] != found[first]:
                self.part.fault(
                    f"{other}={found[other]} contradicts {first}={found[first]}: "
                    f"both name the same number"
                )
        return found[first]

    def flag(self, *aliases: str, default: bool) -> bool:
        """Return a truth value, *default* where none of *aliases* is there."""
        for _, holder, key in self._places(aliases):
            return holder.flag(key)
        return default

    def text(self, key: str) -> str:
        """Return a text, empty where it is absent or no text."""
        node = self.node(key)
        return node.as_text() if node is not None and node.kind == "text" else ""

    def absent(self, *aliases: str) -> bool:
        """Return whether none of *aliases* is there, not even as null."""
        return not any(self.part.has(alias.split(".")[0]) for alias in aliases)

    def class_count(self, default: int, called: str, *aliases: str) -> int:
        """Return the number under *aliases*, or, where they are absent, that of the class.

        Args:
            default: what the class takes, 0 where it takes none.
            called: what it is called where it is listed as assumed.
            aliases: names of the key.
        """
        if default and self.absent(*aliases):
            source = default_source(self.text("model_type"))
            self.assumed[called] = f"not stated: {default}, {source}"
            return default
        return self.count(*aliases, default=0, minimum=0)

    def shape_count(self, field: str, *aliases: str) -> int:
        """Return the number under *aliases*; a part inside may leave it to its class.

        Args:
            field: ``vocab``, ``hidden``, ``ffn``, ``layers`` or ``heads``, for what is assumed.
            aliases: names of the key.
        """
        shape = (
            NESTED_SHAPES.get(self.text("model_type"), {}) if self.part is not self.whole else {}
        )
        if shape and self.absent(*aliases):
            return self.class_count(shape[field], field, *aliases)
        return self.count(*aliases)

    def missing(self, *aliases: str) -> None:
        """Record that none of *aliases* is there."""
        shown = [alias for alias in aliases[1:] if "." not in alias][:3]
        others = f" (or {', '.join(shown)})" if shown else ""
        self.part.fault(f"missing key {aliases[0]!r}{others}")

    def _places(self, aliases: tuple[str, ...]) -> Iterator[tuple[str, Node, str]]:
        for alias in aliases:
            self.asked.add(alias.split(".")[0])
            holder, *path = self.part, *alias.split(".")
            while len(path) > 1:
                inner = holder.optional(path.pop(0))
                if inner is None or inner.kind != "map":
                    break
                holder = inner
            else:
                value = holder.optional(path[0])
                if value is not None and value.kind != "null":
                    yield alias, holder, path[0]


def _repeated(holder: Node, key: str, node: Node, minimum: int, maximum: int) -> int:
    items = [item.as_count(minimum=minimum) for item in holder.list(key)[:MOST_ENTRIES]]
    if not items or len({*items}) > 1 or items[0] > maximum:
        node.fault("differs from layer to layer: layers of different shapes are not modelled")
        return minimum
    return items[0]
