"""How an answer is written down: as text for people and agents, or as one JSON object.

Hides: the frame around what was found. Promises: text in notes can't pass for that frame. Only a
hit begins with `- `, only the account of the search with `searched:`, a hit's citation is the last
thing on its first line; the other lines of a hit are indented. Control characters, the ones that
turn the direction of writing, other line ends and what is not UTF-8 are shown escaped: `\\x1b` for
one of ASCII or a byte, `\\u202e` for others. A backslash of the text stays as it is: JSON is there
for the exact text.
"""

import re
from collections.abc import Callable
from json import dumps

from geniuzfs.recall.hits import Answer, Hit, Searched
from geniuzfs.recall.query import Format, Mode

TEXT_MAX = 4_000
"""Characters of a hit's text that are shown, unless all are asked for; of the rest, the number.
JSON has them all.
"""

NOTHING = "Nothing found."

# C0 but for the tab, DEL, C1, the line and paragraph separators, the embeddings, overrides and
# isolates of bidirectional text, lone surrogates. Marks without an extent (U+200E, U+200F) stay:
# Arabic and Hebrew texts have them, and they turn nothing around.
_UNSAFE = re.compile(
    r"[\0-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_BULLET = re.compile(r"\A\s*[-*+] +(?=\S)")
"""The mark of a list's item, where a text begins with one: the answer is a list itself."""

_ESCAPED_BYTES = range(0xDC80, 0xDD00)
"""What surrogateescape makes of bytes that are not UTF-8."""

_WAYS = {
    Mode.GREP: "grep",
    Mode.THREAD: "threads",
    Mode.RANDOM: "at random",
    Mode.RECENT: "newest first",
}


def written(
    answer: Answer,
    form: Format,
    *,
    show_folder: bool = False,
    prefix: str = "",
    beside: Callable[[str], str] = str,
) -> str:
    """The answer in the form that was asked for; the others as in `text`."""
    if form is Format.JSON:
        return json(answer)
    return text(answer, show_folder=show_folder, prefix=prefix, beside=beside)


def text(
    answer: Answer,
    *,
    show_folder: bool = False,
    prefix: str = "",
    beside: Callable[[str], str] = str,
) -> str:
    """One line a hit, the best first, and what was searched; every line ends with a newline.

    `show_folder`: begin paths with the folder's name, for an answer over several. `prefix` stands
    before every path: where the folder, or the directory of the folders, is found, as in
    `/memories`. `beside`: what marks, for a terminal, all that is not of a text itself.
    """
    most = None if answer.full else TEXT_MAX
    hits = [_hit(hit, prefix + f"/{hit.folder}" * show_folder, most, beside) for hit in answer.hits]
    return "\n".join([*(hits or [NOTHING]), beside(_searched(answer.searched)), ""])


def json(answer: Answer) -> str:
    """One object on one line, with a newline. Text comes exactly as it is in the notes; where a
    terminal would act on it, or it is no UTF-8, in JSON's own `\\u` form.
    """
    searched = answer.searched
    whole = {
        "query": answer.query,
        "hits": [_object(hit) for hit in answer.hits],
        "searched": {
            "passages": searched.passages,
            "memories": searched.memories,
            "since": searched.since,
            "until": searched.until,
            "path": searched.path,
            "labels": [f"{key}={value}" for key, value in searched.labels],
            "quoted": searched.quoted,
            "mode": searched.mode,
            "words": searched.words,
            "meaning": searched.meaning,
            "note": searched.model_note,
            "waiting": searched.waiting,
            "folders": searched.folders,
            "left_out": dict(searched.left_out),
        },
    }
    written = dumps(whole, ensure_ascii=False, allow_nan=False)
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", written) + "\n"


def _object(hit: Hit) -> dict[str, object]:
    return {
        "kind": hit.kind,
        "folder": hit.folder,
        "path": hit.path,
        "lines": [hit.first_line, hit.last_line],
        "text": hit.text,
        "date": hit.date,
        "score": round(float(hit.score), 4),
        "address": hit.address,
        "labels": dict(hit.labels),
        "weak": hit.weak,
    }


def _hit(hit: Hit, place: str, most: int | None, beside: Callable[[str], str]) -> str:
    first, *others = _lines(_BULLET.sub("", hit.text), most)
    cited = beside(f"[{_citation(hit, place)}]")
    head = f"- {first} {cited}" if first else f"- {cited}"
    return "\n".join([head, *(f"  {line}" if line else "" for line in others)])


def _lines(text: str, most: int | None) -> list[str]:
    """The text's lines, fit to be shown. At least one, which may be empty."""
    text = text.rstrip().lstrip("\r\n")
    if most is not None and len(text) > most:
        text = f"{text[:most]}… ({len(text) - most:,} more characters)"
    return [_escaped(line.removesuffix("\r")) for line in text.split("\n")]


def _citation(hit: Hit, place: str) -> str:
    """`/notes.md:2, 2026-10-06`, the address instead for a memory."""
    # A path with ` [/` in it would look like the beginning of a citation.
    path = _escaped(place + hit.path).replace(" [/", " \\x5b/")
    where = hit.address or f"{path}:{hit.first_line}"
    return ", ".join(part for part in (where, hit.date, "weak" * hit.weak) if part)


def _searched(searched: Searched) -> str:
    labels = (f"{key}={value}" for key, value in searched.labels)
    left_out = (f"{name} left out: {reason}" for name, reason in searched.left_out)
    parts = [
        f"{_count(searched.passages, 'passage', 'passages')},"
        f" {_count(searched.memories, 'memory', 'memories')}",
        f"in {searched.path}" if searched.path not in (None, "/") else "",
        *labels,
        *(f'with "{phrase}"' for phrase in searched.quoted),
        _window(searched),
        _way(searched),
        f"{searched.waiting} still being learned" if searched.waiting else "",
        *left_out,
    ]
    return _escaped("searched: " + " · ".join(part for part in parts if part))


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _window(searched: Searched) -> str:
    since, until = searched.since, searched.until
    if since is not None and since == until:
        return f"on {since}"
    asked = (f"since {since}" if since else "", f"until {until}" if until else "")
    return " ".join(part for part in asked if part) or "all time"


def _way(searched: Searched) -> str:
    """`words + meaning`, `words only (why)`, `newest first`, `by address`."""
    if searched.named:
        return "the thread of an address" if searched.mode is Mode.THREAD else "by address"
    used = " + ".join(["words"] * searched.words + ["meaning"] * searched.meaning)
    if searched.mode is Mode.AUTO and searched.words != searched.meaning:
        used += " only"
    ways = ", ".join(part for part in (_WAYS.get(searched.mode, ""), used) if part)
    note = f"({searched.model_note})" if searched.model_note else ""
    return f"{ways or 'neither words nor meaning'} {note}".rstrip()


def _escaped(line: str) -> str:
    return _UNSAFE.sub(lambda found: _escape(ord(found[0])), line)


def _escape(code: int) -> str:
    if code in _ESCAPED_BYTES:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}"
