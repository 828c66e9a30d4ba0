"""The variables and commands of a launch script, read without running anything.

Enough of the shell's language for the scripts that start training: assignments, arrays and their
``+=``, ``${NAME:-default}``, ``$((A + B))``, quotes, comments, line continuations, here-documents
(skipped) and ``if`` with tests of texts and numbers. Where a value hangs on something only a shell
would know (a command's output, a loop, a test we cannot decide) it is *unknown*, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.errors import SpecError
from topologies.shell_words import Word, closing, split_commands

UNKNOWN = "\0"
MOST_CHARACTERS = 2**17
MOST_WORDS = 20_000
MOST_NESTED = 16
MOST_EXPANDED = 100_000

_LITERAL = re.compile(r"[^\\$`'\"]*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
_PARAMETER = re.compile(
    r"([A-Za-z_][A-Za-z0-9_]*|[0-9@*#?])(?:\[[@*]\])?(?:(:?[-=?+])(.*))?$", re.DOTALL
)
_ARITHMETIC = re.compile(r"\s*(?:([0-9]{1,12})(?![0-9])|([A-Za-z_][A-Za-z0-9_]*)|([-+*/%()]))")
_PATTERN = re.compile(r"[^()]+\)")  # of a branch of ``case``
_OPENERS = {"if", "for", "while", "until", "case", "select"}
_CLOSERS = {"fi", "done", "esac"}
_RUNS, _NOT_YET, _OVER, _UNKNOWN_BRANCH = "runs", "not yet", "over", "unknown"
_BRANCH = {True: _RUNS, False: _NOT_YET, None: _UNKNOWN_BRANCH}
"""The branch of a block by what its test says; one that ran leaves the others of it over."""
_TESTS = {branch: said for said, branch in _BRANCH.items()}
_AFTER = {_RUNS: _OVER, _OVER: _OVER, _NOT_YET: _RUNS, _UNKNOWN_BRANCH: _UNKNOWN_BRANCH}
"""What ``else`` finds, or an ``elif`` that is not tested."""


@dataclass(slots=True)
class Script:
    """What a script sets and starts.

    Args:
        variables: name to text; ``UNKNOWN`` inside a text marks what only a shell would know.
        arrays: name to words.
        commands: the words of each command, expanded, each with its line.
        choices: name to what branches set it to, where only a shell would know which one runs.
    """

    variables: dict[str, str] = field(default_factory=dict)
    arrays: dict[str, tuple[Word, ...]] = field(default_factory=dict)
    commands: list[tuple[Word, ...]] = field(default_factory=list)
    choices: dict[str, list[Word]] = field(default_factory=dict)


def read_script(text: str, *, preset: Mapping[str, str] | None = None) -> Script:
    """Return what *text* sets and starts.

    Args:
        text: the script.
        preset: variables set from outside, which an assignment in the script overrides.

    Raises:
        SpecError: an unfinished quote or bracket, or a script beyond the limits.

    >>> script = read_script('TP=${TP:-8}; A=(--tp $TP --n $((TP*2))); run "${A[@]}" # done')
    >>> [word.raw for word in script.commands[0]]
    ['run', '--tp', '8', '--n', '16']
    """
    if len(text) > MOST_CHARACTERS:
        raise SpecError(f"a script of {len(text):,} characters: at most {MOST_CHARACTERS:,}")
    script = Script(variables=dict(preset or {}))
    live: list[str] = []
    went: bool | None = True  # how the command before ended
    in_test = decides = False  # whether that was a test, which && and || go on with, and counts
    for words in split_commands(text):
        joint = words.pop(0).raw if words[0].raw in {"&&", "||"} else ""
        if joint and in_test:
            if decides:
                so_far = _joined(_TESTS[live[-1]], joint, _tested(script, words))
                live[-1] = _BRANCH[so_far]
            continue
        head = words[0].raw if words else ""
        in_test = head in {"if", "elif", "while", "until"}
        decides = head == "if" or (head == "elif" and bool(live) and live[-1] == _NOT_YET)
        if joint and went is (joint == "||"):
            continue  # not run: ``true || this``, ``false && this``
        _follow(script, words, live, certain=not joint or went is not None)
        went = _ended(script, words, went if joint else True)
    return script


def _joined(left: bool | None, joint: str, right: bool | None) -> bool | None:
    """Return what two tests say together, none where that hangs on one that we cannot decide."""
    deciding = joint == "||"
    if deciding in (left, right):
        return deciding
    return None if None in (left, right) else not deciding


def _ended(script: Script, words: list[Word], before: bool | None) -> bool | None:
    """Return how a command ends: a test as it says, after one that we cannot decide unknown."""
    if words and words[0].raw in {"[", "[["}:
        return None if before is None else _tested(script, words)
    return before


def _follow(script: Script, words: list[Word], live: list[str], *, certain: bool) -> None:
    """Take one command into account; *live* has the branch of each open block."""
    while words and words[0].raw in {"then", "do", "else", "elif", "!", "{", "}", "time"}:
        first = words.pop(0).raw
        if first == "else" and live:
            live[-1] = _AFTER[live[-1]]
        elif first == "elif" and live:
            tested = live[-1] == _NOT_YET
            live[-1] = _BRANCH[_tested(script, words)] if tested else _AFTER[live[-1]]
            return
    if words and _UNKNOWN_BRANCH in live and _PATTERN.fullmatch(words[0].raw):
        words.pop(0)
    if not words:
        return
    head = words[0].raw
    if head in _OPENERS:
        live.append(_BRANCH[_tested(script, words[1:])] if head == "if" else _UNKNOWN_BRANCH)
        return
    if head in _CLOSERS:
        if live:
            live.pop()
        return
    if {_NOT_YET, _OVER} & {*live}:
        return
    _run(script, words, certain=certain and _UNKNOWN_BRANCH not in live)


def _run(script: Script, words: list[Word], *, certain: bool) -> None:
    if words[0].raw in {"export", "declare", "local", "readonly", "typeset"}:
        words = [word for word in words[1:] if not word.raw.startswith("-")]
    index = 0
    while index < len(words):
        match = _ASSIGNMENT.match(words[index].raw)
        if match is None:
            break
        _assign(script, match.group(1), words[index], match, certain=certain)
        index += 1
    rest = words[index:]
    if rest and not _looks_like_test(rest[0].raw):
        script.commands.append(_expanded(script, rest))
        if sum(map(len, script.commands[-1:])) > MOST_WORDS or len(script.commands) > MOST_WORDS:
            raise SpecError(f"more than {MOST_WORDS:,} words or commands")


def _looks_like_test(raw: str) -> bool:
    return raw in {"[", "[[", "set", "unset", "shift", "echo", "cd", "mkdir", "source", ".", "cat"}


def _assign(script: Script, name: str, word: Word, match: re.Match[str], *, certain: bool) -> None:
    value, adds = word.raw[match.end() :], bool(match.group(2))
    itself = re.match(rf'[("]*\$\{{?{name}\b\}}?', value)
    adds = adds or (not certain and itself is not None)  # NAME="$NAME more" is NAME+=" more"
    if not certain and not adds:
        script.choices.setdefault(name, []).append(Word(value, word.line))
    if value.startswith("("):
        inner = [inside for line in split_commands(value[1:-1], word.line) for inside in line]
        words = _expanded(script, inner) if certain else (Word(UNKNOWN, word.line),)
        script.arrays[name] = (script.arrays.get(name, ()) if adds else ()) + words
        if len(script.arrays[name]) > MOST_WORDS:
            raise SpecError(f"{name}: more than {MOST_WORDS:,} words")
        return
    text = expand(script, value) if certain else UNKNOWN
    if not certain and value[itself.end() if itself else 0 :].lstrip("\"'").startswith(" "):
        text = " " + text
    script.variables[name] = (script.variables.get(name, "") if adds else "") + text
    _bounded(script.variables[name])


def _expanded(script: Script, words: list[Word]) -> tuple[Word, ...]:
    result: list[Word] = []
    for word in words:
        bare = word.raw.strip('"')
        array = re.fullmatch(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?:\[[@*]\])?\}|\$([A-Za-z_]\w*)", bare)
        name = (array.group(1) or array.group(2)) if array else ""
        if name in script.arrays and ("[" in bare or name not in script.variables):
            result.extend(script.arrays[name])
        elif '"' in word.raw or "'" in word.raw:
            result.append(Word(expand(script, word.raw), word.line))
        else:
            text = expand(script, word.raw)
            result.extend(Word(piece, word.line) for piece in text.split())
        if len(result) > MOST_WORDS:
            raise SpecError(f"more than {MOST_WORDS:,} words in one command")
    return tuple(result)


def expand(script: Script, raw: str, depth: int = 0) -> str:
    """Return *raw* without quotes and with its variables and sums filled in."""
    if depth > MOST_NESTED:
        raise SpecError(f"expansions nested deeper than {MOST_NESTED}")
    out: list[str] = []
    at, quote, size = 0, "", 0
    while at < len(raw):
        character = raw[at]
        if character == quote:
            quote, piece, at = "", "", at + 1
        elif not quote and character in "'\"":
            quote, piece, at = character, "", at + 1
        elif character == "\\" and quote != "'" and at + 1 < len(raw):
            piece, at = raw[at + 1], at + 2
        elif character == "$" and quote != "'":
            piece, at = _dollar(script, raw, at, depth)
        elif character == "`" and quote != "'":
            end = raw.find("`", at + 1)
            piece, at = UNKNOWN, (end if end >= 0 else len(raw)) + 1
        else:
            end = _LITERAL.match(raw, at + 1).end()  # type: ignore[union-attr]
            piece, at = raw[at:end], end
        out.append(piece)
        size += len(piece)
        if size > MOST_EXPANDED:
            raise SpecError(f"a text that expands to more than {MOST_EXPANDED:,} characters")
    return "".join(out)


def _dollar(script: Script, raw: str, at: int, depth: int) -> tuple[str, int]:
    if raw.startswith("$((", at):
        end = closing(raw, at + 1, "(", ")")
        return _arithmetic(script, raw[at + 3 : end - 1], depth), end + 1
    if raw.startswith("$(", at):
        return UNKNOWN, closing(raw, at + 1, "(", ")") + 1
    if raw.startswith("${", at):
        end = closing(raw, at + 1, "{", "}")
        return _parameter(script, raw[at + 2 : end], depth), end + 1
    match = _NAME.match(raw, at + 1)
    if match:
        return script.variables.get(match.group(), UNKNOWN), match.end()
    if at + 1 < len(raw) and raw[at + 1] in "0123456789@*#?$!":
        return UNKNOWN, at + 2
    return "$", at + 1


def _parameter(script: Script, inner: str, depth: int) -> str:
    match = _PARAMETER.match(inner)
    if match is None:
        return UNKNOWN
    name, operator, default = match.groups()
    value = script.variables.get(name)
    if value is None and name in script.arrays:
        value = " ".join(word.raw for word in script.arrays[name])
    if operator in {":-", "-", ":=", "="}:
        value = value or expand(script, default, depth + 1)
        if "=" in operator:
            script.variables[name] = value
    return UNKNOWN if value is None or operator in {":+", "+"} else value


def _bounded(text: str) -> None:
    if len(text) > MOST_EXPANDED:
        raise SpecError(f"a text that expands to more than {MOST_EXPANDED:,} characters")


def _arithmetic(script: Script, text: str, depth: int) -> str:
    """Return the value of ``$((…))``: whole numbers, + - * / %, brackets, variables."""
    tokens: list[str] = []
    filled = expand(script, text, depth + 1) if "$" in text else text
    end, stripped = 0, filled.rstrip()
    while end < len(stripped):
        match = _ARITHMETIC.match(stripped, end)
        if match is None or len(tokens) > 1000:
            return UNKNOWN
        number, name, operator = match.groups()
        if name:
            number = script.variables.get(name, UNKNOWN).strip()
            if not re.fullmatch(r"[0-9]{1,12}", number):
                return UNKNOWN
        tokens.append(number or operator)
        end = match.end()
    try:
        return str(_Sum(tokens).value(depth))
    except (ArithmeticError, IndexError, ValueError):
        return UNKNOWN


class _Sum:
    """``+ - * / %`` over whole numbers, as the shell has them."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens

    def value(self, depth: int) -> int:
        total = self._sum(depth)
        if self.tokens:
            raise ValueError
        return total

    def _sum(self, depth: int) -> int:
        total = self._product(depth)
        while self.tokens and self.tokens[0] in "+-":
            sign = 1 if self.tokens.pop(0) == "+" else -1
            total += sign * self._product(depth)
        return total

    def _product(self, depth: int) -> int:
        product = self._atom(depth)
        while self.tokens and self.tokens[0] in "*/%":
            operator, right = self.tokens.pop(0), self._atom(depth)
            if operator == "*":
                product *= right
            else:
                product = product // right if operator == "/" else product % right
            if abs(product) > 10**18:
                raise ArithmeticError
        return product

    def _atom(self, depth: int) -> int:
        first = self.tokens.pop(0)
        if first == "-" and depth <= MOST_NESTED:
            return -self._atom(depth + 1)
        if first == "(" and depth <= MOST_NESTED:
            total = self._sum(depth + 1)
            if self.tokens.pop(0) != ")":
                raise ValueError
            return total
        return int(first)


def _tested(script: Script, words: list[Word]) -> bool | None:
    """Return what a ``[ … ]`` says, none where only a shell would know."""
    raws = [word.raw for word in words]
    if not raws or raws[0] not in {"[", "[["} or raws[-1] not in {"]", "]]"}:
        return None
    operands = [expand(script, raw) for raw in raws[1:-1]]
    unset = [operand == UNKNOWN for operand in operands]
    if len(operands) == 2 and operands[0] in {"-z", "-n"}:
        return None if unset[1] else (operands[1] == "") == (operands[0] == "-z")
    if len(operands) != 3 or any(UNKNOWN in operand for operand in operands):
        return None
    left, operator, right = operands
    if operator in {"=", "==", "!="} and not {*right} & {*"*?["}:
        return (left == right) == (operator != "!=")
    if re.fullmatch(r"-?[0-9]{1,12}", left) and re.fullmatch(r"-?[0-9]{1,12}", right):
        a, b = int(left), int(right)
        known = {"-eq": a == b, "-ne": a != b, "-gt": a > b, "-ge": a >= b, "-lt": a < b,
                 "-le": a <= b}  # fmt: skip
        return known.get(operator)
    return None
