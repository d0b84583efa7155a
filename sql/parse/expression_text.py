"""Parses expressions. Operators in the order of their precedence, lowest first:

expression := term OR term | term AND term | NOT term | predicate
predicate  := value [operator value | [NOT] BETWEEN value AND value | [NOT] IN ( expressions )
            | [NOT] LIKE value [ESCAPE text] | IS [NOT] NULL | IS [NOT] DISTINCT FROM value]
value      := value || value | value +- value | value */% value | +- value | primary
primary    := literal | name [. name] | name ( arguments ) | ( expression ) | CASE ... END
            | CAST ( expression AS type ) | ARRAY [ ... ] | MAP ( ... ) | STRUCT ( ... )
            | primary [ value ] | primary -> name
"""

from collections.abc import Sequence
from decimal import Decimal

from sql.parse.reader import DIGITS_MAX, Reader
from sql.parse.tokens import unquoted
from sql.parse.type_text import read_type
from sql.syntax import expressions as ex
from sql.syntax.node import Position

COMPARISONS = {"=": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
BINDING = {"||": 1, "+": 2, "-": 2, "*": 3, "/": 3, "%": 3}
UNITS = frozenset({"DAYS", "HOURS", "MINUTES", "SECONDS", "MILLISECONDS", "MILLISECOND"})
# Longer chains of AND, OR and || become balanced trees, which are equivalent and not deep. The
# halves are short enough to be printed and parsed as the same tree.
CHAIN_MAX = 32


def read_expression(reader: Reader) -> ex.Expression:
    """Parse a whole expression."""
    choices: list[ex.Expression] = []
    terms: list[ex.Expression] = []
    choice_height = term_height = 0
    while True:
        terms.append(_term(reader))
        term_height = max(term_height, reader.height)
        if reader.accept("AND"):
            continue
        choices.append(_chained(reader, "AND", terms, term_height))
        choice_height = max(choice_height, reader.height)
        if not reader.accept("OR"):
            return _chained(reader, "OR", choices, choice_height)
        terms, term_height = [], 0


def read_expressions(reader: Reader) -> tuple[ex.Expression, ...]:
    """Parse one or more expressions; the height is that of the highest."""
    found = [read_expression(reader)]
    height = reader.height
    while reader.accept(","):
        found.append(read_expression(reader))
        height = max(height, reader.height)
    reader.height = height
    return tuple(found)


def _chained(
    reader: Reader, operator: str, terms: Sequence[ex.Expression], height: int
) -> ex.Expression:
    """The terms of one operator, from left to right; `height` is that of the highest."""
    if len(terms) > CHAIN_MAX:
        result, added = _halved(operator, terms)
    else:
        result, added = _in_order(operator, terms)
    reader.grow(height + added)
    return result


def _halved(operator: str, terms: Sequence[ex.Expression]) -> tuple[ex.Expression, int]:
    if len(terms) <= CHAIN_MAX // 2:
        return _in_order(operator, terms)
    middle = len(terms) // 2
    left, left_added = _halved(operator, terms[:middle])
    right, right_added = _halved(operator, terms[middle:])
    return _joined(operator, left, right), max(left_added, right_added) + 1


def _in_order(operator: str, terms: Sequence[ex.Expression]) -> tuple[ex.Expression, int]:
    found = terms[0]
    for term in terms[1:]:
        found = _joined(operator, found, term)
    return found, len(terms) - 1


def _joined(operator: str, left: ex.Expression, right: ex.Expression) -> ex.Expression:
    if operator == "||":
        return ex.Concatenation(left, right, position=left.position)
    return ex.Logical(operator, left, right, position=left.position)


def _term(reader: Reader) -> ex.Expression:
    """Parse a predicate with any number of NOT before it."""
    places: list[Position] = []
    while reader.word == "NOT":
        places.append(reader.position())
        reader.grow(len(places))
        reader.advance()
    value = read_value(reader)
    word = reader.word
    if word in COMPARISONS:
        height = reader.height
        reader.advance()
        right = read_value(reader)
        value = ex.Comparison(COMPARISONS[word], value, right, position=value.position)
        reader.grow(max(height, reader.height) + 1)
    elif word in ("IS", "NOT", "BETWEEN", "IN", "LIKE"):
        value = _predicate(reader, value)
    for place in reversed(places):
        value = ex.Not(value, position=place)
    if places:
        reader.grow(reader.height + len(places))
    return value


def _predicate(reader: Reader, value: ex.Expression) -> ex.Expression:
    if reader.accept("IS"):
        return _is(reader, value)
    height = reader.height
    negated = reader.accept("NOT")
    result: ex.Expression
    if reader.accept("BETWEEN"):
        low = read_value(reader)
        height = max(height, reader.height)
        reader.expect("AND")
        result = ex.Between(value, low, read_value(reader), negated, position=value.position)
    elif reader.accept("IN"):
        reader.expect("(")
        reader.enter()
        result = ex.In(value, read_expressions(reader), negated, position=value.position)
        reader.expect(")")
        reader.leave(reader.height)
    elif reader.accept("LIKE"):
        pattern = read_value(reader)
        escape = reader.text() if reader.accept("ESCAPE") else None
        result = ex.Like(value, pattern, escape, negated, position=value.position)
    else:
        reader.fail("BETWEEN", "IN", "LIKE")
    reader.grow(max(height, reader.height) + 1)
    return result


def _is(reader: Reader, value: ex.Expression) -> ex.Expression:
    height = reader.height
    negated = reader.accept("NOT")
    if reader.accept("NULL"):
        reader.grow(height + 1)
        return ex.IsNull(value, negated, position=value.position)
    if not reader.accept("DISTINCT"):
        reader.fail(*(("NULL", "DISTINCT") if negated else ("NOT", "NULL", "DISTINCT")))
    reader.expect("FROM")
    operator = "IS NOT DISTINCT FROM" if negated else "IS DISTINCT FROM"
    right = read_value(reader)
    reader.grow(max(height, reader.height) + 1)
    return ex.Comparison(operator, value, right, position=value.position)


def read_value(reader: Reader) -> ex.Expression:
    """Parse an expression without comparisons, AND, OR and NOT outside of parentheses."""
    joined: list[ex.Expression] = []  # operands of ||
    joined_height = 0
    sums: list[tuple[ex.Expression, str, int]] = []  # pending operands and their operators
    while True:
        operand, height = _signed(reader), reader.height
        binding = BINDING.get(reader.word, 0)
        while sums and BINDING[sums[-1][1]] >= max(binding, 2):
            left, operator, left_height = sums.pop()
            height = max(height, left_height) + 1
            reader.grow(height)
            operand = ex.Arithmetic(operator, left, operand, position=left.position)
        if binding > 1:
            sums.append((operand, reader.word, height))
            reader.advance()
            continue
        joined.append(operand)
        joined_height = max(joined_height, height)
        if binding:
            reader.advance()
            continue
        return _chained(reader, "||", joined, joined_height)


def _signed(reader: Reader) -> ex.Expression:
    """Parse a primary after any number of + and -; a minus belongs to the number after it."""
    if reader.word not in ("-", "+"):
        return read_primary(reader)
    unary: list[tuple[str, Position]] = []
    while reader.word in ("-", "+"):
        unary.append((reader.word, reader.position()))
        reader.grow(len(unary))
        reader.advance()
    result: ex.Expression
    if reader.kind in NUMBERS and unary[-1][0] == "-":
        _, place = unary.pop()
        result = _after(reader, _number(reader, place, negative=True))
    else:
        result = read_primary(reader)
    for operator, place in reversed(unary):
        result = ex.Signed(operator, result, position=place)
    if unary:
        reader.grow(reader.height + len(unary))
    return result


NUMBERS = frozenset({"whole", "fraction", "exponent"})


def _number(reader: Reader, place: Position, *, negative: bool) -> ex.Literal:
    reader.height = 1
    text = reader.token_text()
    if reader.kind == "whole":
        return ex.IntegerLiteral(reader.whole(negative=negative), position=place)
    if len(text) > DIGITS_MAX:
        reader.refuse_number(text, negative=negative)
    if reader.kind == "fraction":
        exact = Decimal(text)
        reader.advance()
        # A zero has no sign, and negation must not round.
        exact = exact.copy_negate() if negative and exact else exact
        return ex.DecimalLiteral(exact, position=place)
    number = float(text)
    if number == float("inf"):
        reader.refuse_number(text, negative=negative, why="Number overflows DOUBLE")
    reader.advance()
    return ex.DoubleLiteral(-number if negative else number, position=place)


def read_literal(reader: Reader) -> ex.Literal:
    """Parse a literal, optionally with a minus."""
    place = reader.position()
    negative = reader.word == "-" and reader.next_kind() in NUMBERS
    if negative:
        reader.advance()
    literal = _plain_literal(reader, place, negative=negative)
    if literal is None:
        reader.fail()
    return literal


def _plain_literal(reader: Reader, place: Position, *, negative: bool = False) -> ex.Literal | None:
    reader.height = 1
    if reader.kind in NUMBERS:
        return _number(reader, place, negative=negative)
    if reader.kind == "text":
        text = unquoted(reader.token_text())
        reader.advance()
        return ex.StringLiteral(text, position=place)
    if reader.word in ("TRUE", "FALSE"):
        value = reader.word == "TRUE"
        reader.advance()
        return ex.BooleanLiteral(value, position=place)
    if reader.accept("NULL") or reader.literal_variable():
        return ex.Null(position=place)
    return None


def read_primary(reader: Reader) -> ex.Expression:
    """Parse a primary, with all [] and -> after it."""
    place = reader.position()
    kind, word = reader.kind, reader.word
    found: ex.Expression | None
    if kind == "name" or kind == "quoted" or (kind == "variable" and reader.next_word() == "."):
        found = _named(reader, place)
    elif word == "(":
        reader.advance()
        reader.enter()
        found = read_expression(reader)
        reader.expect(")")
        reader.leave(reader.height)
    elif word == "CASE":
        found = _case(reader, place)
    elif word == "CAST":
        found = _cast(reader, place)
    else:
        found = _plain_literal(reader, place)
        if found is None:
            reader.fail()
    return _after(reader, found) if reader.word in ("[", "->") else found


def _after(reader: Reader, base: ex.Expression) -> ex.Expression:
    while True:
        height = reader.height
        # struct->* belongs to SELECT.
        if reader.word == "->" and reader.next_word() != "*":
            reader.advance()
            base = ex.FieldOf(base, reader.name(), position=base.position)
        elif reader.accept("["):
            reader.enter()
            base = ex.Subscript(base, read_value(reader), position=base.position)
            reader.expect("]")
            reader.leave(max(height, reader.height))
        else:
            return base
        reader.grow(max(height, reader.height) + 1)


def _named(reader: Reader, place: Position) -> ex.Expression:
    following = reader.next_word()
    if following == "(":
        if reader.word in ("MAP", "STRUCT"):
            return _map(reader, place) if reader.word == "MAP" else _struct(reader, place)
        return _call(reader, place)
    if following == "[" and reader.word == "ARRAY":
        return _array(reader, place)
    reader.height = 1
    name = reader.name()
    if reader.word == "." and reader.next_word() != "*":
        reader.advance()
        return ex.Name(reader.name(), name, position=place)
    return ex.Name(name, position=place)


def _call(reader: Reader, place: Position) -> ex.Call:
    function = reader.name()
    reader.expect("(")
    reader.enter()
    arguments: list[ex.Expression] = []
    height = 0
    if reader.word == "*" and reader.next_word() == ")":
        arguments.append(ex.Star(position=reader.position()))
        reader.advance()
    elif reader.word != ")":
        while True:
            arguments.append(_argument(reader))
            height = max(height, reader.height)
            if not reader.accept(","):
                break
    reader.expect(")")
    reader.leave(height + 1)
    return ex.Call(function, tuple(arguments), position=place)


def _argument(reader: Reader) -> ex.Expression:
    place = reader.position()
    reader.height = 1
    if reader.word in UNITS:
        unit = reader.word
        reader.advance()
        return ex.IntervalUnit(unit, position=place)
    parameters = _parameters(reader)
    if not parameters:
        return read_expression(reader)
    body = read_expression(reader)
    reader.grow(reader.height + 1)
    return ex.Lambda(parameters, body, position=place)


def _parameters(reader: Reader) -> tuple[str, ...]:
    """The parameters of a lambda, if one begins here: x => or (x, y) =>."""
    names = ("name", "quoted")
    if reader.next_word() == "=>" and reader.kind in names:
        found = [reader.name()]
    elif reader.word == "(" and reader.next_kind() in names:
        distance = 2
        while reader.next_word(distance) == "," and reader.next_kind(distance + 1) in names:
            distance += 2
        if reader.next_word(distance) != ")" or reader.next_word(distance + 1) != "=>":
            return ()
        reader.advance()
        found = [reader.name()]
        while reader.accept(","):
            found.append(reader.name())
        reader.expect(")")
    else:
        return ()
    reader.expect("=>")
    return tuple(found)


def _cast(reader: Reader, place: Position) -> ex.Cast:
    reader.expect("CAST", "(")
    reader.enter()
    value = read_expression(reader)
    height = reader.height
    reader.expect("AS")
    target = read_type(reader)
    reader.expect(")")
    reader.leave(height + 1)
    return ex.Cast(value, target, position=place)


def _case(reader: Reader, place: Position) -> ex.Case:
    reader.expect("CASE")
    reader.enter()
    height = 0
    operand = None
    if reader.word != "WHEN":
        operand = read_expression(reader)
        height = reader.height
    whens: list[ex.When] = []
    while reader.word == "WHEN" or not whens:
        when = reader.position()
        reader.expect("WHEN")
        condition = read_expression(reader)
        height = max(height, reader.height)
        reader.expect("THEN")
        whens.append(ex.When(condition, read_expression(reader), position=when))
        height = max(height, reader.height)
    default = None
    if reader.accept("ELSE"):
        default = read_expression(reader)
        height = max(height, reader.height)
    if not reader.accept("END"):
        reader.fail(*(("END",) if default is not None else ("WHEN", "ELSE", "END")))
    reader.leave(height + 1)
    return ex.Case(operand, tuple(whens), default, position=place)


def _array(reader: Reader, place: Position) -> ex.ArrayOfValues:
    reader.expect("ARRAY", "[")
    reader.enter()
    reader.height = 0
    elements = () if reader.word == "]" else read_expressions(reader)
    reader.expect("]")
    reader.leave(reader.height + 1)
    return ex.ArrayOfValues(elements, position=place)


def _map(reader: Reader, place: Position) -> ex.MapOfValues:
    reader.expect("MAP", "(")
    reader.enter()
    entries: list[tuple[ex.Expression, ex.Expression]] = []
    height = 0
    while reader.word != ")" or entries:
        key = read_expression(reader)
        height = max(height, reader.height)
        reader.expect(":=")
        entries.append((key, read_expression(reader)))
        height = max(height, reader.height)
        if not reader.accept(","):
            break
    reader.expect(")")
    reader.leave(height + 1)
    return ex.MapOfValues(tuple(entries), position=place)


def _struct(reader: Reader, place: Position) -> ex.StructOfValues:
    reader.expect("STRUCT", "(")
    reader.enter()
    fields: list[tuple[str, ex.Expression]] = []
    height = 0
    while reader.word != ")" or fields:
        name = reader.name()
        reader.expect(":=")
        fields.append((name, read_expression(reader)))
        height = max(height, reader.height)
        if not reader.accept(","):
            break
    reader.expect(")")
    reader.leave(height + 1)
    return ex.StructOfValues(tuple(fields), position=place)
