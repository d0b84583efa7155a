"""Functions that mask strings: upper case, lower case, digits and other characters."""

from functools import lru_cache
from unicodedata import category

from sql.functions.registry import Family
from sql.functions.utf16_text import is_plain, length_of, text_of, units_of

masks = Family("STRING")

Masks = tuple[str | None, str | None, str | None, str | None]
DEFAULT_MASKS: Masks = ("X", "x", "n", "-")
KINDS = {"Lu": 0, "Ll": 1, "Nd": 2}
OTHER = 3
FOUR = "upper STRING, lower STRING, digit STRING, other STRING"
RULES = "Upper-case letters become X, lower-case x, digits n and others -, or the given characters."


class _Table(dict[int, str]):
    """The mask of each character, computed on first use."""

    def __init__(self, masks: Masks) -> None:
        super().__init__()
        self._masks = masks

    def __missing__(self, code: int) -> str:
        character = chr(code)
        mask = self._masks[KINDS.get(category(character), OTHER)]
        masked = character if mask is None else mask
        # The second half of a character beyond U+FFFF is masked, too: it is not a letter.
        if code > 0xFFFF and mask is not None:
            masked += self._masks[OTHER] or "?"
        self[code] = masked
        return masked


@lru_cache(maxsize=256)
def _table(masks: Masks) -> _Table:
    for mask in masks:
        if mask is not None and length_of(mask) != 1:
            raise ValueError(
                f"Invalid mask character. Must be only single character, but was '{mask}'"
            )
    return _Table(masks)


def _checked(count: int, function: str) -> int:
    if count < 0:
        raise ValueError(
            f"function {function} requires a non-negative number of characters to mask or skip"
        )
    return count


def _cut(text: str, place: int) -> tuple[str, str]:
    """Split a string."""
    if is_plain(text):
        return text[:place], text[place:]
    units = units_of(text)
    return text_of(units[:place]), text_of(units[place:])


@masks.scalar("MASK(text STRING) -> STRING", f"Masks all characters of a string. {RULES}")
@masks.scalar(f"MASK(text STRING, {FOUR}) -> STRING", nulls=True)
def mask(text: str | None, *given: str | None) -> str | None:
    """A null mask keeps its characters."""
    if text is None:
        return None
    return text.translate(_table(_masks(given)))


def _masks(given: tuple[str | None, ...]) -> Masks:
    if not given:
        return DEFAULT_MASKS
    upper, lower, digit, other = given
    return upper, lower, digit, other


@masks.scalar("MASK_LEFT(text STRING, count INT) -> STRING", f"Masks the first characters. {RULES}")
@masks.scalar(f"MASK_LEFT(text STRING, count INT, {FOUR}) -> STRING", nulls=True)
def mask_left(text: str | None, count: int | None, *given: str | None) -> str | None:
    if count is None or text is None:
        return None
    masked, kept = _cut(text, _checked(count, "mask_left"))
    return masked.translate(_table(_masks(given))) + kept


@masks.scalar("MASK_RIGHT(text STRING, count INT) -> STRING", f"Masks the last characters. {RULES}")
@masks.scalar(f"MASK_RIGHT(text STRING, count INT, {FOUR}) -> STRING", nulls=True)
def mask_right(text: str | None, count: int | None, *given: str | None) -> str | None:
    if count is None or text is None:
        return None
    kept, masked = _cut(text, max(length_of(text) - _checked(count, "mask_right"), 0))
    return kept + masked.translate(_table(_masks(given)))


@masks.scalar(
    "MASK_KEEP_LEFT(text STRING, count INT) -> STRING",
    f"Masks all but the first characters. {RULES}",
)
@masks.scalar(f"MASK_KEEP_LEFT(text STRING, count INT, {FOUR}) -> STRING", nulls=True)
def mask_keep_left(text: str | None, count: int | None, *given: str | None) -> str | None:
    if count is None or text is None:
        return None
    kept, masked = _cut(text, _checked(count, "mask_keep_left"))
    return kept + masked.translate(_table(_masks(given)))


@masks.scalar(
    "MASK_KEEP_RIGHT(text STRING, count INT) -> STRING",
    f"Masks all but the last characters. {RULES}",
)
@masks.scalar(f"MASK_KEEP_RIGHT(text STRING, count INT, {FOUR}) -> STRING", nulls=True)
def mask_keep_right(text: str | None, count: int | None, *given: str | None) -> str | None:
    if count is None or text is None:
        return None
    masked, kept = _cut(text, max(length_of(text) - _checked(count, "mask_keep_right"), 0))
    return masked.translate(_table(_masks(given))) + kept
