"""Session: statements one after the other, with the plans of their queries."""

from dataclasses import dataclass, field, replace

from sql.analyse.replacement import altered, check_drop_type, created_type, dropped
from sql.analyse.sources import NoSchemas, SchemaSource, SourceAnalyser
from sql.catalog import Catalog, SourceInfo
from sql.functions.builtin import builtin_functions
from sql.functions.registry import FunctionRegistry
from sql.parse import parse
from sql.planner import PlannedQuery, Planner
from sql.syntax import statements as st


@dataclass(slots=True)
class Session:
    """A catalog that statements change; nothing runs."""

    catalog: Catalog = field(default_factory=Catalog)
    settings: dict[str, object] = field(default_factory=dict)
    schemas: SchemaSource = field(default_factory=NoSchemas)
    plans: list[PlannedQuery] = field(default_factory=list)
    functions: FunctionRegistry = field(default_factory=builtin_functions)

    def run(self, text: str) -> "Session":
        """Carry out all statements of a text."""
        for parsed in parse(text):
            self._run(parsed.statement, parsed.text)
        return self

    def __getitem__(self, name: str) -> SourceInfo:
        """A stream or table."""
        return self.catalog.sources[name]

    def _run(self, statement: st.Statement, text: str) -> None:
        match statement:
            case st.CreateSource():
                made = SourceAnalyser(self.catalog, self.settings, self.schemas).create(
                    statement, text
                )
                self._add(made)
            case st.CreateAsSelect() | st.InsertSelect() | st.Select():
                planner = Planner(self.catalog, self.functions, self.settings, self.schemas)
                planned = planner.plan(statement, text)
                if planned is not None:
                    self.plans.append(planned)
                    if planned.sink is not None and planned.creates_sink:
                        self._add(replace(planned.sink, query_id="QUERY"))
            case st.AlterSource():
                self._add(altered(statement, self.catalog))
            case st.SetProperty():
                self.settings[statement.name] = statement.value
            case _:
                self._run_other(statement)

    def _run_other(self, statement: st.Statement) -> None:
        match statement:
            case st.CreateType():
                type_ = created_type(statement, self.catalog)
                if type_ is not None:
                    self.catalog.types[statement.name] = type_
            case st.DropType():
                if check_drop_type(statement, self.catalog):
                    del self.catalog.types[statement.name]
            case st.DropSource():
                found = dropped(statement, self.catalog)
                if found is not None:
                    del self.catalog.sources[found.name]
            case _:
                raise AssertionError(f"{type(statement).__name__} is for an engine")

    def _add(self, made: SourceInfo | None) -> None:
        if made is not None:
            self.catalog.sources[made.name] = made
