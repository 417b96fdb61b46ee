"""Names of hashes and requests that a careless engine takes for one another.

A *style* is one way in which names can be alike: long and different only at one end, different
beyond ASCII only, the same number written in several ways, of one checksum, each the beginning of
the next. All names of one draw are distinct, and none is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, count, islice, product
from random import Random
from zlib import adler32

__all__ = ["ALIKE", "BY_SIGN", "JOINED", "STYLES", "Style", "draw_names", "style_name"]

Style = Callable[[Random, int], Iterator[str]]
"""Names of one style, at least as many as are asked for; some may occur twice."""


def style_name(style: Style) -> str:
    """In what way the names are alike, in words."""
    return style.__name__.strip("_").replace("_", " ")


_LENGTHS = (15, 16, 31, 32, 63, 64, 100, 127, 128, 250, 255, 256, 257, 511, 512, 1000, 1024)
"""Where fields end."""


def draw_names(
    random: Random, number: int, style: Style | None = None, *, first_ones: bool = False
) -> list[str]:
    """So many names, of one style, in any order.

    Those that come first, or some that stand together further on.
    """
    chosen = random.choice(STYLES) if style is None else style
    found = tuple(dict.fromkeys(islice(chosen(random, number), 4 * number + 60)))
    # Those that are alike stand together.
    first = 0 if first_ones else random.randrange(max(1, len(found) - number + 1))
    names = list(islice(chain(found[first:], (f"x{k}" for k in count())), number))
    random.shuffle(names)
    return names


def _letters(random: Random, number: int) -> Iterator[str]:
    yield from (chr(ord("A") + k) for k in range(min(number, 26)))
    yield from (f"h{k}" for k in range(26, number))


def _stem(random: Random) -> str:
    """A text of a length at which a field may end, or just before."""
    length = max(1, random.choice(_LENGTHS) - random.randrange(3))
    return ("image-of-some-length/0123456789abcdef" * 30)[:length]


def _differ_at_the_end(random: Random, number: int) -> Iterator[str]:
    stem = _stem(random)
    return (stem + name for name in _letters(random, number))


def _differ_at_the_beginning(random: Random, number: int) -> Iterator[str]:
    stem = _stem(random)
    return (name + stem for name in _letters(random, number))


def _differ_in_the_middle(random: Random, number: int) -> Iterator[str]:
    before, behind = _stem(random), _stem(random)
    return (before + name + behind for name in _letters(random, number))


def _differ_at_one_place(random: Random, number: int) -> Iterator[str]:
    """Texts of one length, each with another sign at a place of its own."""
    stem = _stem(random) + "." * number
    for _ in count():
        at = random.randrange(len(stem))
        yield stem[:at] + "#" + stem[at + 1 :]


def _beginnings(random: Random, number: int) -> Iterator[str]:
    """Each is the beginning of the next."""
    sign = random.choice(("a", "1", "ab"))
    return (sign * (k + 1) for k in range(number))


def _numbered(random: Random, number: int) -> Iterator[str]:
    """As engines number their requests: the first is the beginning of the tenth."""
    prefix, first = random.choice(("r", "", "req-")), random.choice((0, 1, 1, 9, 250))
    return (f"{prefix}{k}" for k in range(first, first + number))


def _large_numbers(random: Random, number: int) -> Iterator[str]:
    """Numbers with many figures; beyond 2^53 a float has no place for the last."""
    base = random.choice((10**9, 1 << 32, 1 << 53, 10**20))
    return (str(base + k) for k in range(number))


def _one_number_in_many_ways(random: Random, number: int) -> Iterator[str]:
    for k in count(1):
        yield from (f"{k}", f"0{k}", f"{k}.0", f"{k}e0", f"+{k}", f"{k}.", f" {k}", f"{k} ")
        yield from (f"00{k}", f"0x{k}", f"{k}0e-1", f"-{k}", f"{k}.00", f"{k}L", f"{k}_0", f"{k}0")


def _anagrams(random: Random, number: int) -> Iterator[str]:
    """The same letters in another order, for checksums that do not see it."""
    letters = "abcdefghijkl"
    return ("".join(random.sample(letters, len(letters))) for _ in count())


def _case(random: Random, number: int) -> Iterator[str]:
    words = product(*((letter, letter.upper()) for letter in "imagehash"))
    return map("".join, words)


def _spaces(random: Random, number: int) -> Iterator[str]:
    signs = random.choice((" ", "\t", " \n", "\u00a0"))
    return (signs * k + "a" + signs * j for k in count() for j in range(k + 1))


def _padded_with(sign: str) -> Iterator[str]:
    return (sign * k + "a1" + sign * j for k in count() for j in range(k + 2))


def _padded(random: Random, number: int) -> Iterator[str]:
    """What is filled up to a length at either end: with zeros, as base64, as a path or a number."""
    return _padded_with(random.choice(_PADS))


_PADS = "=0.-_/~+*x# \t\n"


def _escapes(random: Random, number: int) -> Iterator[str]:
    """Signs that JSON escapes, or writes as two."""
    return (f'"\\{x}\t\u00e9\u20ac\U0001f600/\u007f' for x in _letters(random, number))


def _ends_of_texts(random: Random, number: int) -> Iterator[str]:
    """Behind a sign at which a text ends for C, for a shell, for a line, for a list."""
    return _behind(random.choice((_ENDS[0], *_ENDS)), number)


def _behind(sign: str, number: int) -> Iterator[str]:
    return chain((f"a{sign}{x}" for x in _letters(Random(0), number)), (f"a{sign}", f"{sign}a"))


_ENDS = (
    "\0",
    "\n",
    "/",
    "\\",
    "#",
    ":",
    ",",
    ";",
    "|",
    "%",
    "@",
    "?",
    "=",
    "&",
    "+",
    "-",
    "_",
    ".",
    "~",
)


def _separators(random: Random, number: int) -> Iterator[str]:
    """Texts that are the same when what stands between their parts is left out or changed."""
    return ("a" + x + "1" + y + "b" for x in "/:-_., |\0#" for y in ("", "/", ":", "-", "_", "."))


def _beyond_ascii(random: Random, number: int) -> Iterator[str]:
    """The same in ASCII: they differ in letters of another alphabet."""
    first = random.choice((0xC0, 0x3B1, 0x4E00, 0xAC00, 0xFF21, 0x1F600, 0x20000))
    return (f"image-{chr(first + k)}" for k in range(number))


def _of_one_low_byte(random: Random, number: int) -> Iterator[str]:
    """The same to who keeps one byte of each letter: their codes are 256 apart."""
    first = random.choice((0x41, 0xE9, 0x3B1))
    return (f"image-{chr(first + 256 * k)}" for k in range(min(number, 200)))


def _composed(random: Random, number: int) -> Iterator[str]:
    """A letter with its sign, the two apart, the letter alone: one text to who normalises."""
    yield from ("\u00e9", "e\u0301", "e", "\u00f6", "o\u0308", "o", "\ufb01", "fi", "f\u200bi")
    yield from ("\u212b", "\u00c5", "A\u030a", "A", "\u017f", "s", "\u2126", "\u03a9", "\u0130")
    yield from ("i\u0307", "i", "\u0131", "\u1ebd", "e\u0303", "e\u00ad", "e\ufe0f", "\uff21")


def _words(random: Random, number: int) -> Iterator[str]:
    """What a language has another use for."""
    yield from ("null", "true", "false", "NaN", "None", "nil", "undefined", "Infinity", "-0", "0")
    yield from ("__proto__", "constructor", "toString", "hasOwnProperty", "length", "__class__")
    yield from ("*", "?", ".", "..", "/", "''", '""', "[]", "{}", "$HOME", "%s", "{0}", "<a>", "&")


# --- names of one checksum ---------------------------------------------------------------------


def _of_blocks(name: str, *blocks: str) -> Style:
    """Blocks of one length that a checksum does not tell apart, and so neither what they make."""

    def style(random: Random, number: int) -> Iterator[str]:
        length = max(1, (number - 1).bit_length()) + random.randrange(3)
        return map("".join, product(blocks, repeat=length))

    style.__name__ = name
    return style


_CHECKSUMS = {
    "crc32": ("8755d764", "4170cb18", "b4538002", "ac67906e"),
    "fnv-1a": ("781f49de", "401021bf", "a2b93825", "d08f5cbd"),
    "fnv-1": ("d6b94437", "a5846ecc", "c52fb24a", "9c02d595"),
    "sdbm": ("025a9133", "8f77af2e", "00bb9151", "8dd8af4c"),
    "crc32c": ("1441e896", "fca1a963", "144ae49f", "fcaaa56c"),
    "murmur3": ("91949e44", "ef69b10d", "9f8ecccb", "689bd9ed"),
    "crc16": ("432b4666", "d843c7c3", "58a98dfb", "cb48e3d4"),
    "crc16 of modems": ("1500857c", "4fd85ffe", "2a010af8", "87cfd317"),
    "fletcher": ("491c0cfa", "a07c4c6c", "0a983e9f", "a94d7a69"),
    "one at a time": ("5235a290", "e6566621", "825de3a3", "dbba06e6"),
}

_MIXES = {
    "djb2 with exclusive or": ("a22d2b75", "a1c241b1", "126e90a3", "e0d6a9e1"),
    "elf": ("ab670e4d", "d2670e4d", "a5b5deea", "beb84eaa"),
    "by 131": ("71e404da", "84a96994", "d98ee68a", "81fe3498"),
    "js": ("7ee14b90", "91e3b600", "df6c7a08", "fa77aa37"),
    "by 37": ("9d1c1743", "9fd8c3af", "66c6f326", "d3ed8d77"),
    "by 257": ("47a293f3", "61f357c4", "402a75c8", "4c1d6237"),
    "rotating": ("a1a9775c", "35a975c2", "f646e1f4", "eb46e1f9"),
    "murmur2": ("9294c8c9", "0fd17164", "8be98d75", "4dc32913"),
    "xxh32": ("ab2cd31e", "66839bbe", "30800842", "e86e7b83"),
}

ALIKE = _CHECKSUMS | _MIXES
"""By the checksum, of 16 or 32 bits: texts that share it two by two, and so every one that is cut
from it. They were found by trying."""


def _of_checksums(name: str, alike: Mapping[str, Sequence[str]]) -> Style:
    def style(random: Random, number: int) -> Iterator[str]:
        texts = list(alike.values())
        first = random.randrange(len(texts))
        for pair in (slice(0, 2), slice(2, 4)):
            yield from chain.from_iterable(t[pair] for t in texts[first:] + texts[:first])
        yield from _letters(random, number)

    style.__name__ = name
    return style


def _of_one_sum(random: Random, number: int) -> Iterator[str]:
    """Texts with one Adler sum: what one letter gives another takes."""
    blocks = ("bbbb", "caac")
    assert adler32(b"xbbbb") == adler32(b"xcaac")
    return _of_blocks("of one sum", *blocks)(random, number)


STYLES: tuple[Style, ...] = (
    _letters,
    _letters,
    _differ_at_the_end,
    _differ_at_the_beginning,
    _differ_in_the_middle,
    _differ_at_one_place,
    _beginnings,
    _numbered,
    _large_numbers,
    _one_number_in_many_ways,
    _anagrams,
    _case,
    _spaces,
    _escapes,
    _ends_of_texts,
    _separators,
    _beyond_ascii,
    _of_one_low_byte,
    _composed,
    _words,
    _of_blocks("alike by 31", "Aa", "BB"),  # by 31, as Java has it
    _of_blocks("alike by 33", "Ez", "FY"),  # by 33
    _of_checksums("of one checksum", _CHECKSUMS),
    _of_one_sum,
    _of_checksums("of one mix", _MIXES),
    _padded,
)


# --- names that are put together ---------------------------------------------------------------


def _joined_by(sign: str, called: str) -> Style:
    """Names of equal parts with a sign between them.

    Where hashes and requests both have such names, a key that is put together of a hash and a
    request with that sign is one and the same for many pairs: it tells how many parts both have.
    """

    def style(random: Random, number: int) -> Iterator[str]:
        return (sign.join("a" * (k + 1)) for k in range(number))

    style.__name__ = f"parts joined by {called}"
    return style


def _of_sign(name: str, sign: str, names: Callable[[int], Iterator[str]]) -> Style:
    def style(random: Random, number: int) -> Iterator[str]:
        return names(number)

    style.__name__ = f"{name} the sign {ord(sign):04x}"
    return style


BY_SIGN: tuple[Style, ...] = (
    *(_of_sign("padded with", sign, lambda n, s=sign: _padded_with(s)) for sign in _PADS),  # type: ignore[misc]
    *(_of_sign("behind", sign, lambda n, s=sign: _behind(s, n)) for sign in _ENDS),  # type: ignore[misc]
)
"""The styles that are about one sign, with each sign there is."""

JOINED: tuple[Style, ...] = tuple(
    _joined_by(sign, called)
    for sign, called in (
        ("", "nothing"),
        ("-", "a dash"),
        (":", "a colon"),
        ("_", "a low line"),
        ("/", "a slash"),
        (".", "a dot"),
        ("|", "a bar"),
        ("#", "a hash sign"),
        (",", "a comma"),
        (" ", "a blank"),
        ("@", "an at sign"),
        ("\0", "a NUL"),
    )
)
"""One for each sign that keys are usually put together with."""
