"""Strategies for SQL syntax trees: every kind of node, with all fields."""

from decimal import Decimal

from hypothesis import strategies as some

from sql.parse.expression_text import UNITS as ARGUMENT_UNITS
from sql.parse.query_text import UNITS
from sql.syntax import expressions as ex
from sql.syntax import queries as qu
from sql.syntax import statements as st
from sql.syntax import type_names as ty
from sql.syntax.keywords import RESERVED

WORDS = ("A", "B_2", "ID", "KEY", "EMIT", "PARTITION", "MAP", "ARRAY", "STRUCT", "TABLES", "COLUMN")

texts = some.text(max_size=8)
names = (
    some.sampled_from(WORDS)
    | some.sampled_from(sorted(RESERVED))
    | some.text(min_size=1, max_size=6)
)
plain_names = some.from_regex(r"[A-Z_][A-Z0-9_]{0,5}", fullmatch=True)
flags = some.booleans()
bigints = some.integers(-(2**63), 2**63 - 1)
counts = some.integers(0, 2**63 - 1)


def tuples_of(
    parts: some.SearchStrategy[ex.Expression], least: int = 0
) -> some.SearchStrategy[tuple[ex.Expression, ...]]:
    """Some expressions, in a tuple."""
    return some.lists(parts, min_size=least, max_size=3).map(tuple)


types: some.SearchStrategy[ty.TypeSyntax] = some.recursive(
    some.builds(ty.NamedType, names, some.lists(bigints, max_size=2).map(tuple)),
    lambda inner: (
        some.builds(ty.ArrayOf, inner)
        | some.builds(ty.MapOf, inner, inner)
        | some.builds(ty.StructOf, some.lists(some.tuples(names, inner), max_size=3).map(tuple))
    ),
    max_leaves=4,
)

decimals = some.tuples(bigints, some.integers(0, 30)).map(
    lambda parts: Decimal(parts[0]).scaleb(-parts[1])
)
literals: some.SearchStrategy[ex.Literal] = some.one_of(
    some.builds(ex.Null),
    some.builds(ex.BooleanLiteral, flags),
    some.builds(ex.IntegerLiteral, bigints),
    some.builds(ex.DecimalLiteral, decimals),
    some.builds(ex.DoubleLiteral, some.floats(allow_nan=False, allow_infinity=False)),
    some.builds(ex.StringLiteral, texts),
)


def _calls(inner: some.SearchStrategy[ex.Expression]) -> some.SearchStrategy[ex.Expression]:
    lambdas = some.builds(ex.Lambda, some.lists(names, min_size=1, max_size=3).map(tuple), inner)
    units = some.builds(ex.IntervalUnit, some.sampled_from(sorted(ARGUMENT_UNITS)))
    arguments = tuples_of(inner | lambdas | units) | some.just((ex.Star(),))
    return some.builds(ex.Call, names, arguments)


def _larger(inner: some.SearchStrategy[ex.Expression]) -> some.SearchStrategy[ex.Expression]:
    comparisons = ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
    whens = some.lists(some.builds(ex.When, inner, inner), min_size=1, max_size=2).map(tuple)
    optional = some.none() | inner
    pairs = some.lists(some.tuples(inner, inner), max_size=2).map(tuple)
    fields = some.lists(some.tuples(names, inner), max_size=2).map(tuple)
    return some.one_of(
        some.builds(ex.Arithmetic, some.sampled_from("+-*/%"), inner, inner),
        some.builds(ex.Concatenation, inner, inner),
        some.builds(ex.Signed, some.sampled_from("+-"), inner),
        some.builds(ex.Comparison, some.sampled_from(comparisons), inner, inner),
        some.builds(ex.Logical, some.sampled_from(("AND", "OR")), inner, inner),
        some.builds(ex.Not, inner),
        some.builds(ex.IsNull, inner, flags),
        some.builds(ex.Between, inner, inner, inner, flags),
        some.builds(ex.In, inner, tuples_of(inner, least=1), flags),
        some.builds(ex.Like, inner, inner, some.none() | texts, flags),
        some.builds(ex.Case, optional, whens, optional),
        some.builds(ex.Cast, inner, types),
        some.builds(ex.FieldOf, inner, names),
        some.builds(ex.Subscript, inner, inner),
        _calls(inner),
        some.builds(ex.ArrayOfValues, tuples_of(inner)),
        some.builds(ex.MapOfValues, pairs),
        some.builds(ex.StructOfValues, fields),
    )


columns = some.builds(ex.Name, names, some.none() | names)
expressions: some.SearchStrategy[ex.Expression] = some.recursive(
    literals | columns, _larger, max_leaves=6
)
# Inside statements, simple expressions suffice: operators are tested separately.
small = literals | columns | some.recursive(literals | columns, _larger, max_leaves=2)

durations = some.builds(qu.Duration, counts, some.sampled_from(sorted(UNITS)))
maybe_durations = some.none() | durations


@some.composite
def windows(draw: some.DrawFn) -> qu.Window:
    """Windows; only hopping windows have an advance."""
    kind = draw(some.sampled_from(qu.WindowKind))
    advance = draw(durations) if kind is qu.WindowKind.HOPPING else None
    size, retention, grace = draw(durations), draw(maybe_durations), draw(maybe_durations)
    return qu.Window(kind, size, advance, retention, grace)


sources = names.map(lambda name: qu.Source(name, name)) | some.builds(qu.Source, names, names)
items: some.SearchStrategy[qu.SelectItem] = some.one_of(
    some.builds(qu.SelectExpression, small, some.none() | names),
    some.builds(qu.SelectAll, some.none() | names),
    some.builds(qu.SelectFields, small),
)
withins = some.builds(qu.Within, durations, durations, maybe_durations)
joins = some.builds(qu.Join, some.sampled_from(qu.JoinKind), sources, small, some.none() | withins)
queries = some.builds(
    qu.Query,
    items=some.lists(items, min_size=1, max_size=3).map(tuple),
    source=sources,
    joins=some.lists(joins, max_size=2).map(tuple),
    window=some.none() | windows(),
    where=some.none() | small,
    group_by=tuples_of(small),
    partition_by=tuples_of(small),
    having=some.none() | small,
    emit=some.sampled_from(qu.EmitClause),
    limit=some.none() | bigints,
)

kinds = some.sampled_from(st.SourceKind)
upper_properties = some.lists(some.tuples(texts.map(str.upper), literals), max_size=3).map(tuple)
properties = some.lists(some.tuples(texts, literals), max_size=3).map(tuple)


@some.composite
def definitions(draw: some.DrawFn, roles: tuple[st.ColumnRole, ...]) -> st.ColumnDefinition:
    """Columns with one of these roles."""
    role = draw(some.sampled_from(roles))
    header = draw(texts) if role is st.ColumnRole.HEADER else None
    return st.ColumnDefinition(draw(names), draw(types), role, header)


@some.composite
def created_sources(draw: some.DrawFn) -> st.CreateSource:
    """Streams with KEYs, or tables with PRIMARY KEYs."""
    kind = draw(kinds)
    other = st.ColumnRole.PRIMARY_KEY if kind is st.SourceKind.STREAM else st.ColumnRole.KEY
    roles = tuple(each for each in st.ColumnRole if each is not other)
    return st.CreateSource(
        kind,
        draw(names),
        tuple(draw(some.lists(definitions(roles), max_size=3))),
        draw(upper_properties),
        *(draw(flags), draw(flags), draw(flags)),
    )


@some.composite
def shown(draw: some.DrawFn) -> st.Show:
    """SHOW statements; some support EXTENDED."""
    what = draw(some.sampled_from(st.Listing))
    extendable = what.value.endswith(("TOPICS", "STREAMS", "TABLES", "QUERIES"))
    return st.Show(what, extendable and draw(flags))


asserted = some.builds(
    st.CreateSource,
    kinds,
    names,
    some.lists(definitions(tuple(st.ColumnRole)), max_size=2).map(tuple),
    upper_properties,
)
added = some.lists(definitions((st.ColumnRole.VALUE,)), min_size=1, max_size=2).map(tuple)
name_lists = some.lists(names, max_size=3).map(tuple)
SIMPLE: dict[type, some.SearchStrategy[st.Statement]] = {
    st.CreateSource: created_sources(),
    st.CreateAsSelect: some.builds(
        st.CreateAsSelect, kinds, names, queries, upper_properties, flags, flags
    ),
    st.InsertSelect: some.builds(st.InsertSelect, names, queries, upper_properties),
    st.InsertValues: some.builds(st.InsertValues, names, name_lists, tuples_of(small)),
    st.Select: some.builds(st.Select, queries),
    st.AlterSource: some.builds(st.AlterSource, kinds, names, added),
    st.AlterSystem: some.builds(st.AlterSystem, texts, texts),
    st.DropSource: some.builds(st.DropSource, kinds, names, flags, flags),
    st.CreateType: some.builds(st.CreateType, names, types, flags),
    st.DropType: some.builds(st.DropType, names, flags),
    st.CreateConnector: some.builds(
        st.CreateConnector, some.sampled_from(st.ConnectorKind), names, properties, flags
    ),
    st.DropConnector: some.builds(st.DropConnector, names, flags),
    st.Show: shown(),
    st.DescribeSource: some.builds(st.DescribeSource, names, flags),
    st.DescribeSources: some.builds(st.DescribeSources, kinds, flags),
    st.DescribeFunction: some.builds(st.DescribeFunction, names),
    st.DescribeConnector: some.builds(st.DescribeConnector, names),
    st.Explain: some.builds(st.Explain, query_id=names),
    st.Print: some.builds(st.Print, texts, flags, some.none() | counts, some.none() | bigints),
    st.ControlQuery: some.builds(
        st.ControlQuery, some.sampled_from(st.QueryAction), some.none() | names
    ),
    st.SetProperty: some.builds(st.SetProperty, texts, texts),
    st.UnsetProperty: some.builds(st.UnsetProperty, texts),
    st.DefineVariable: some.builds(st.DefineVariable, plain_names, texts),
    st.UndefineVariable: some.builds(st.UndefineVariable, plain_names),
    st.AssertTopic: some.builds(st.AssertTopic, texts, flags, upper_properties, maybe_durations),
    st.AssertSchema: some.builds(
        st.AssertSchema, some.none() | texts, some.none() | counts, flags, maybe_durations
    ),
    st.RunScript: some.builds(st.RunScript, texts),
    st.AssertValues: some.builds(st.AssertValues, names, name_lists, tuples_of(small)),
    st.AssertTombstone: some.builds(st.AssertTombstone, names, name_lists, tuples_of(small)),
    st.AssertSource: some.builds(st.AssertSource, asserted),
}
explained = some.builds(st.Explain, statement=some.one_of(*SIMPLE.values()))
statements: some.SearchStrategy[st.Statement] = some.one_of(*SIMPLE.values(), explained)
