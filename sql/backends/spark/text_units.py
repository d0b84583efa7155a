"""Strings as Java counts them, in Spark's SQL: positions and lengths in UTF-16 units.

Spark counts characters, with those beyond U+FFFF once. An ASCII string, which has as many
characters as bytes, is used unchanged; others are split as UTF-16, where half a character becomes a
question mark.
"""

FIRST_HALF = "'^D[C-F]..'"
LAST_HALF = "'D[89AB]..$'"


def length(text: str) -> str:
    """The number of units of a string."""
    return f"shiftright(octet_length(encode({text}, 'UTF-16BE')), 1)"


def part(text: str, position: str, count: str | None) -> str:
    """A number of units of a string from a position on; a negative one counts from the end."""
    end = "" if count is None else f", {count}"
    plain = f"substring({text}, {_first(position, f'length({text})')}{end})"
    end = "" if count is None else f", {_doubled(count, text)}"
    cut = f"substring(encode({text}, 'UTF-16BE'), {_first_byte(position, text)}{end})"
    whole = f"regexp_replace(regexp_replace(hex({cut}), {FIRST_HALF}, '003F'), {LAST_HALF}, '003F')"
    found = f"decode(unhex({whole}), 'UTF-16BE')"
    found = f"if(octet_length({text}) = length({text}), {plain}, {found})"
    unknown = [f"{each} IS NULL" for each in (position, count) if each and not each.isdigit()]
    return f"if({' OR '.join(unknown)}, NULL, {found})" if unknown else found


def _first(position: str, units: str) -> str:
    """A position from the beginning, which is 1; 0 is equivalent."""
    if position.isdigit():
        return position
    return f"if({position} < 0, greatest({units} + {position}, 0) + 1, {position})"


def _first_byte(position: str, text: str) -> str:
    """The byte position of a unit, starting at 1; limited, so that doubling never overflows."""
    if position.isdigit() and int(position) < 2**29:
        return str(2 * max(int(position), 1) - 1)
    units = length(text)
    return f"2 * greatest(least({_first(position, units)}, {units} + 1), 1) - 1"


def _doubled(count: str, text: str) -> str:
    if count.isdigit() and int(count) < 2**29:
        return str(2 * int(count))
    return f"2 * greatest(least({count}, {length(text)}), 0)"


def found_at(text: str, wanted: str) -> str:
    """The position of a string in another, from 1 on; 0 if not found, or either is null."""
    place = f"instr({text}, {wanted})"
    before = length(f"substring({text}, 1, {place} - 1)")
    return (
        f"CASE WHEN {text} IS NULL OR {wanted} IS NULL OR {text} = '' OR {place} = 0 THEN 0"
        f" ELSE {before} + 1 END"
    )
