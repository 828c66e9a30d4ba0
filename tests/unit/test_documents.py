"""Documents: what the usual loaders let through is refused, with its line."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from planner.documents import (
    document_from_text,
    read_bytes,
    read_document,
    read_documents,
    yaml_text,
)
from planner.errors import SpecError


def refusal(text: str | bytes, kind: str = "yaml") -> str:
    """Return why *text* is refused."""
    with pytest.raises(SpecError) as raised:
        document_from_text(text, name="f", kind=kind).finish()
    return str(raised.value)


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("no", "no"), ("yes", "yes"), ("on", "on"), ("12:30:45", "12:30:45"), ("010", "010"),
        ("0x10", "0x10"), (".nan", ".nan"), (".inf", ".inf"), ("2026-01-02", "2026-01-02"),
        ("50 GB/s", "50 GB/s"), ("'8'", "8"), ('"true"', "true"), ("true", True),
        ("false", False), ("null", None), ("~", None), ("8", 8), ("-8", -8), ("1_000", 1000),
        ("1e3", 1000.0), ("2.5", 2.5), ("0", 0),
    ],
)  # fmt: skip
def test_a_plain_yaml_scalar_is_what_yaml_1_2_says_and_never_octal_or_sexagesimal(
    literal: str, value: Any
) -> None:
    read = document_from_text(f"- {literal}").root.plain()[0]

    assert read == value
    assert type(read) is type(value)


def test_every_value_knows_its_file_line_and_column() -> None:
    root = document_from_text("a:\n  - 1\n  - {b: x}\n", name="f.yaml").root

    item = root.list("a")[1]
    assert item.where == "f.yaml:3:5"
    assert item.optional("b").where == "f.yaml:3:9"  # type: ignore[union-attr]
    assert item.optional("b").path == "a[1].b"  # type: ignore[union-attr]


def test_json_values_know_their_places_too() -> None:
    root = document_from_text('{\r\n  "a": [1,\r\n "x"]}', name="f.json", kind="json").root

    assert [item.where for item in root.list("a")] == ["f.json:2:9", "f.json:3:2"]


@pytest.mark.parametrize("kind", ["yaml", "json"])
def test_a_repeated_key_is_refused_with_both_lines(kind: str) -> None:
    assert refusal('{"a": 1,\n"b": 2,\n"a": 3}', kind) == (
        "f:3:1: key 'a' is given twice, first in line 1"
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: &a [*a]", "f:1:8: alias *a stands inside its own value"),
        ("a: *b", "f:1:4: alias *b is not defined before this line"),
        ("a: &a {x: 1}\nb: {<<: *a}", "f:2:5: merge keys"),
        ("? [a]\n: b", "f:1:3: a list cannot be a key"),
        ("a: !!python/object/apply:os.system [ls]", "f:1:4: tag"),
        ("a: !!float 8", "f:1:4: tag"),
        ("[" * 500 + "]" * 500, "f:1:65: nested deeper than 64 levels"),
        ("a: " + "1" * 101, "f:1:4: a number of 101 characters"),
        ("a: 1e999", "f:1:4: number 1e999 is too large"),
        ("k" * 257 + ": 1", "f:1:1: a key of 257 characters"),
        ('a: "\\e[31m"', "f:1:4: control or invisible character U+001B"),
        ("a: \x1b[31m", "f:1:4: control or invisible character U+001B"),
        ("a: 1 # \u202e", "f:1:8: control or invisible character U+202E"),
        ("ok: 1\n\ufeffa: 1", "f:2:1: control or invisible character U+FEFF"),
        ("a\x00b: 1", "f:1:2: control or invisible character U+0000"),
        ("a: [1, 2", "no valid YAML: while parsing a flow sequence"),
        ('a: "x', "no valid YAML: while scanning a quoted scalar"),
        ("a:\n\t- b", "f:2:1: no valid YAML"),
        ("a: 1\n---\nb: 2", "f:3:1: a second document begins here"),
        ("", "f:1:1: the file holds nothing"),
        ("# only this\n", "f:1:1: the file holds nothing"),
        (b"a: x\nb: \xe9", "f:2:4: byte 0xe9 is not UTF-8"),
        ("a: b".encode("utf-16"), "f:1:1: byte 0xff is not UTF-8"),
    ],
)
def test_hostile_or_broken_yaml_is_refused_where_it_is_wrong(text: str | bytes, says: str) -> None:
    assert says in refusal(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a": NaN}', "f:1:7: no valid JSON: expected a value, got 'NaN'"),
        ('{"a": -Infinity}', "got '-Infinity'"),
        ('{"a": 1e999}', "f:1:7: number 1e999 is too large"),
        ("[" * 5000, "f:1:65: nested deeper than 64 levels"),
        ('{"a": "\\ud800"}', "control or invisible character U+D800"),
        ('{"a": "x\ny"}', "line break or control character inside a string"),
        ('{"a": [1,', "f:1:10: no valid JSON: expected a value, got the end of the text"),
        ('{"a": "x', "f:1:7: no valid JSON: the end of the text inside a string"),
        ('{"a": 1,}', "expected a key in double quotes, got '}'"),
        ("{'a': 1}", "expected a key in double quotes"),
        ('{"a": 01}', "got '01', which is no JSON"),
        ('{"a": 1} x', "more text after the end"),
        ('{"a": "\\x"}', "unknown escape"),
        ("", "f:1:1: the file holds nothing"),
    ],
)
def test_hostile_or_broken_json_is_refused_where_it_is_wrong(text: str, says: str) -> None:
    assert says in refusal(text, "json")


def test_an_alias_bomb_is_refused_before_it_expands() -> None:
    levels = [f"l{i + 1}: &l{i + 1} [{', '.join([f'*l{i}'] * 9)}]" for i in range(9)]
    bomb = "l0: &l0 [x, x, x, x, x, x, x, x, x]\n" + "\n".join(levels)
    start_s = time.process_time()

    said = refusal(bomb)

    assert "more than 200000 values, aliases counted as often as used" in said
    assert time.process_time() - start_s < 1


def test_an_honest_alias_is_the_same_value_again() -> None:
    assert document_from_text("a: &x {b: 1}\nc: *x\n").root.plain() == {
        "a": {"b": 1},
        "c": {"b": 1},
    }


def test_more_values_than_any_honest_file_holds_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("planner.documents.MOST_JSON_NODES", 50)

    assert refusal("[" + "1," * 49 + "1]", "json") == (
        "f:1:100: more than 50 values, aliases counted as often as used"
    )


def test_a_byte_order_mark_and_windows_line_ends_are_no_fault() -> None:
    root = document_from_text(b"\xef\xbb\xbfa: 1\r\nb: x\r\n").root

    assert root.plain() == {"a": 1, "b": "x"}


def test_a_missing_file_and_a_directory_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"none\.yaml: there is no such file"):
        read_document(tmp_path / "none.yaml")
    with pytest.raises(SpecError, match="is a directory; name a file"):
        read_document(tmp_path)
    with pytest.raises(SpecError, match="cannot be read"):
        read_document("a\0b")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs a file without an end")
def test_a_file_is_read_up_to_16_mib_whatever_size_it_claims() -> None:
    with pytest.raises(SpecError, match="larger than 16 MiB"):
        read_bytes("/dev/zero")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path) -> None:
    locked = tmp_path / "locked.yaml"
    locked.write_text("a: 1")
    locked.chmod(0)

    with pytest.raises(SpecError, match="cannot be read: Permission denied"):
        read_document(locked)


def test_the_suffix_says_whether_a_file_is_json(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("a: 1")
    (tmp_path / "a.yaml").write_text("a: 1")

    assert read_document(tmp_path / "a.yaml").root.plain() == {"a": 1}
    with pytest.raises(SpecError, match="no valid JSON"):
        read_document(tmp_path / "a.json")


def test_a_stream_of_documents_is_read_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "several.yaml"
    path.write_text("a: 1\n---\nb: 2\n")

    assert [document.root.plain() for document in read_documents(path)] == [{"a": 1}, {"b": 2}]


def test_the_hash_is_of_the_bytes_that_were_read() -> None:
    # printf "a:" | sha256sum
    assert document_from_text("a:").sha256 == (
        "bfc622d4a6d410f26be3d72dd4f04e47bf434f76c655134adb76fef3a083c3a8"
    )


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(
        st.characters(min_codepoint=32, max_codepoint=126) | st.sampled_from("é€😀\n"), max_size=9
    ),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("abc", min_size=1, max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(JSON, st.sampled_from([None, 2]), st.booleans())
def test_json_is_read_as_the_standard_library_reads_it(
    value: Any, indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)

    assert document_from_text(text, kind="json").root.plain() == json.loads(text)


@given(JSON)
def test_what_is_written_as_yaml_reads_back_the_same_here_and_elsewhere(value: Any) -> None:
    text = yaml_text(value)

    assert document_from_text(text).root.plain() == value
    assert yaml.safe_load(text) == value


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused_as_yaml_and_as_json(text: str) -> None:
    for kind in ("yaml", "json"):
        try:
            document_from_text(text, kind=kind).finish()
        except SpecError as error:
            assert all(fault.startswith("<text>:") for fault in error.faults)  # noqa: PT017
