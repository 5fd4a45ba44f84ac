"""A program checked as a whole, before anything is made: what is wrong with any part of it is told together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from catalog.acl import Privilege
from catalog.model import Schema, Store
from mvserver import sqlstates
from mvserver.compiler.view_properties import with_view_properties
from mvserver.errors import SqlError
from mvserver.lenses import metadata
from mvserver.lenses.parser import parse_program
from mvserver.lenses.problems import Place, Problem, ProblemError, Problems, problem
from mvserver.lenses.program import Insert, Program, RowKind, Select, SourceName, With
from mvserver.lenses.rows import Rows
from mvserver.lenses.settings import DeadLetterTopic, ProgramSettings, read_settings
from mvserver.lenses.sources import TopicSource
from mvserver.lenses.translate import Form, Translated, translate
from mvserver.lenses.written import Written, written
from mvserver.quoting import quoted
from mvserver.routing import changelog_sinks, continuous, lookup, privileges, sinks
from mvserver.routing.continuous import PlannedQuery
from mvserver.routing.ports import Services
from mvserver.routing.programs import dead_letters, declarations, schemas, targets
from mvserver.routing.programs.declarations import Declaration
from mvserver.routing.programs.targets import Target
from mvserver.session.context import SessionContext
from mvserver.sql import parse_one
from mvserver.sql.dialect import parse_select
from mvserver.sql.statements.relations import InsertInto
from mvserver.streaming.api import DEAD_LETTERS

_GRACE = "window.grace.millis"


@dataclass(frozen=True)
class PlannedInsert:
    """``statement`` is the INSERT in the first dialect. One of the kind ``dead_letters`` writes what it rejects."""

    statement: InsertInto
    query: PlannedQuery
    target: Target
    place: Place
    kind: str = "insert_into"


@dataclass(frozen=True)
class PlannedProgram:
    name: str
    text: str
    schema: Schema
    store: Store
    sources: tuple[Declaration, ...]
    inserts: tuple[PlannedInsert, ...]
    letters: Target | None  # of records that cannot be written
    settings: ProgramSettings
    warnings: tuple[Problem, ...]

    @property
    def made(self) -> Sequence[Declaration]:
        """What it declares of its targets, each topic once."""
        targets_ = [*(each.target for each in self.inserts), *([] if self.letters is None else [self.letters])]
        found = {each.topic: each.made for each in targets_ if each.made is not None}
        return list(found.values())


@dataclass(frozen=True)
class _Named:
    """A WITH in the first dialect."""

    translated: Translated
    place: Place


def plan(name: str, text: str, start: int, context: SessionContext, services: Services) -> PlannedProgram:
    """``start`` is where the program begins in what the client sent. One SqlError for all that is wrong."""
    store = lookup.store(None, Privilege.USAGE, context, services)
    schema = services.catalog.names.new_relation((f"{name}.source1",), context.database, context.schema)[0]
    privileges.require(schema, Privilege.CREATE, context, services)
    problems = Problems()
    program = parse_program(text, problems)
    settings = read_settings(program, problems)
    planner = _Planner(name, program, settings, problems, (schema, store), context, services)
    inserts = planner.run()
    read = {source.relation.id for insert in inserts for source in insert.query.inputs}
    # Where something is wrong already, what an INSERT would read is not known.
    sources = tuple(each for each in planner.sources.values() if problems or each.relation.id in read)
    inserts = (*planner.dead_letters(sources), *inserts)
    letters = planner.refused_letters(inserts)
    problems.raise_any(start)
    return PlannedProgram(name, text, schema, store, sources, inserts, letters, settings, tuple(planner.warnings))


class _Planner:
    def __init__(
        self,
        name: str,
        program: Program,
        settings: ProgramSettings,
        problems: Problems,
        place: tuple[Schema, Store],
        context: SessionContext,
        services: Services,
    ) -> None:
        self._name = name
        self._program = program
        self._settings = settings
        self._problems = problems
        self._schema, self._store = place
        self._context = context
        self._services = services
        self._named: dict[str, _Named] = {}
        self._broken: set[str] = set(program.unread)  # names of WITHs that have been told
        self._written: dict[str, Target] = {}
        self.warnings = Problems()
        self.sources: dict[tuple[str, RowKind], Declaration] = {}

    def run(self) -> tuple[PlannedInsert, ...]:
        for each in self._program.withs:
            self._with(each)
        planned = [found for each in self._program.inserts if (found := self._insert(each)) is not None]
        self._check_loops(planned)
        return tuple(planned)

    # --- topics -----------------------------------------------------------------------------------------------------
    def _topic(self, source: SourceName, kind: RowKind) -> TopicSource:
        """As it is found by a SELECT that reads it."""
        if source.name in self._broken:
            raise _ToldError
        known = self.sources.get((source.name, kind))
        if known is None:
            known = self._declared(source, kind)
        schema = schemas.of_relation(known.relation)
        properties = (("starting.position", self._settings.starting),)
        return TopicSource(schema.rows(kind), known.relation.name, properties)

    def _declared(self, source: SourceName, kind: RowKind) -> Declaration:
        services, context, topic = self._services, self._context, source.name
        with self._problems.told_at(source.place):
            if not services.stores.client(self._store).entity_exists(topic):
                raise SqlError(
                    sqlstates.UNDEFINED_OBJECT,
                    f'"{topic}" is neither a topic of store "{self._store.name}" nor a WITH before it',
                    hint="A WITH stands before what reads it.",
                )
            schema = schemas.of_topic(self._store, topic, kind, context, services)
            if schema is None:
                raise SqlError(
                    sqlstates.UNDEFINED_OBJECT,
                    f'nothing is known of the records of topic "{topic}"',
                    hint="Declare them with CREATE STREAM or CREATE CHANGELOG over the topic, or register a schema.",
                )
            if kind is RowKind.TABLE and schema.key is None:
                raise SqlError(
                    sqlstates.UNDEFINED_OBJECT,
                    f'nothing is known of the keys of topic "{topic}", which a TABLE needs',
                    hint="Declare them: 'key.format' and 'key.type' of CREATE STREAM, or CREATE CHANGELOG.",
                )
            name = f"{self._name}.source{len(self.sources) + 1}"
            handling, place = self._settings.error_handling, (self._schema, self._store)
            made = declarations.source(name, topic, kind, schema, place, handling, context, services)
            services.catalog.relations.check_new(self._schema.id, name)
            marked = (*made.relation.properties, (schemas.PROCESSOR, self._name))
            made = replace(made, relation=replace(made.relation, properties=marked))
            self.sources[topic, kind] = made
            return made
        raise _ToldError

    # --- named queries ----------------------------------------------------------------------------------------------
    def _with(self, query: With) -> None:
        if query.name in self._named or query.name in self._broken:
            message = f'"{query.name}" is the name of two WITHs'
            self._problems.add(Problem(query.place, sqlstates.DUPLICATE_ALIAS, message, "Rename one of them."))
            return
        form = Form(carried=metadata.used_in(self._program))
        translated = self._translated(query.select, form)
        planned = None if translated is None else self._compiled(translated, query.place)
        if translated is not None and planned is not None and (objects := targets.objects(translated, planned)):
            translated = self._translated(query.select, replace(form, objects=objects))
            planned = None if translated is None else self._compiled(translated, query.place)
        if translated is None or planned is None:
            self._broken.add(query.name)
            return
        self._named[query.name] = _Named(translated, query.place)

    def _translated(self, select: Select, form: Form) -> Translated | None:
        known: dict[str, Rows] = {name: each.translated.rows for name, each in self._named.items()}
        try:
            translated = translate(select, known, self._topic, form)
        except _ToldError:
            return None
        except ProblemError as error:
            self._problems.add(error.problem)
            return None
        if self._settings.nullability != "ignore":
            told = self._problems if self._settings.nullability == "strict" else self.warnings
            for finding in translated.findings:
                told.add(finding)
        return translated

    def _whole(self, translated: Translated) -> Written:
        """The SELECT with the named queries that it reads, the innermost first."""
        wanted: dict[str, None] = {}

        def visit(names: Sequence[str]) -> None:
            for name in names:
                if name not in wanted:
                    visit(self._named[name].translated.reads)
                    wanted[name] = None

        visit(translated.reads)
        if not wanted:
            return translated.text
        result = written("WITH ")
        for number, name in enumerate(wanted):
            named = self._named[name]
            result.add(", " if number else "", named.place, f"{quoted(name)} AS (", named.translated.text, ")")
        return result.add(" ", translated.text)

    def _compiled(self, translated: Translated, place: Place) -> PlannedQuery | None:
        text = Written()
        with self._problems.collecting(), self._problems.told_at(place, lambda position: text.find(position, place)):
            text = self._whole(translated)
            return self._planned(parse_select(text.text))
        return None

    # --- inserts ----------------------------------------------------------------------------------------------------
    def _insert(self, insert: Insert) -> PlannedInsert | None:
        form = Form(leaves_out=self._settings.writing == "continue")
        translated = self._translated(insert.select, form)
        if translated is None:
            return None
        text = Written()
        with (
            self._problems.collecting(),
            self._problems.told_at(insert.place, lambda position: text.find(position, insert.place)),
        ):
            text = whole = self._whole(translated)
            planned = self._planned(parse_select(whole.text))
            casts, objects = targets.conversions(insert, translated, planned), targets.objects(translated, planned)
            form = replace(form, casts=casts, objects=objects)
            if (casts or objects) and (converted := self._translated(insert.select, form)) is not None:
                translated = converted
                text = whole = self._whole(converted)
                planned = self._planned(parse_select(whole.text))
            target = targets.target(
                insert, translated.rows, planned, self._settings, (self._schema, self._store), self._free_name(),
                self._context, self._services,
            )  # fmt: skip
            target = self._shared(insert, target)
            text = written(insert.place, f"INSERT INTO {quoted(target.relation.name)} ", whole)
            statement = parse_one(text.text)
            assert isinstance(statement, InsertInto)  # noqa: S101 - just written
            return PlannedInsert(statement, self._checked(statement, target, translated), target, insert.place)
        return None

    def _free_name(self) -> str:
        return f"{self._name}.target{len(self._written) + 1}"

    def _shared(self, insert: Insert, target: Target) -> Target:
        """Of a topic that an INSERT before it makes, what that one declares."""
        first = self._written.setdefault(target.topic, target)
        if first is target or target.made is None:
            return target
        if not targets.is_same(first.relation, target.relation):
            raise _written_otherwise(insert)
        return replace(first, made=None)

    def _planned(self, select: exp.Expression, *, written: bool = True) -> PlannedQuery:
        new = {each.relation.name: each.relation for each in self.sources.values()}
        starting = self._settings.starting
        return continuous.plan(
            select, self._context, self._services, default_starting=starting, new=new, written=written
        )

    def _checked(self, statement: InsertInto, target: Target, translated: Translated) -> PlannedQuery:
        """As INSERT INTO of the first dialect is checked."""
        check = changelog_sinks.check_insert if target.relation.key_columns else sinks.check_insert
        planned = self._planned(statement.select, written=not target.relation.key_columns)
        if translated.grace is not None:
            planned = replace(planned, plan=with_view_properties(planned.plan, {_GRACE: translated.grace.millis}))
        check(target.relation, planned, self._services)
        return planned

    # --- dead letters -----------------------------------------------------------------------------------------------
    def dead_letters(self, sources: Sequence[Declaration]) -> tuple[PlannedInsert, ...]:
        """A query for each source, that writes what cannot be read of it."""
        topic = self._settings.dead_letters
        if topic is None or not topic.read:
            return ()
        found: list[PlannedInsert] = []
        with self._problems.collecting(), self._problems.told_at(topic.place):
            for source in sources:
                select = f"SELECT * FROM {quoted(source.relation.name)}"
                planned = self._planned(parse_select(select))
                target = self._letters(topic, planned)
                if found:
                    target = replace(found[0].target, made=None)
                statement = parse_one(f"INSERT INTO {quoted(target.relation.name)} {select}")
                assert isinstance(statement, InsertInto)  # noqa: S101 - just written
                found.append(PlannedInsert(statement, planned, target, topic.place, DEAD_LETTERS))
            self._check_loops(found)
        return tuple(found)

    def refused_letters(self, inserts: Sequence[PlannedInsert]) -> Target | None:
        """The topic of records that cannot be written, which each INSERT writes with its own."""
        topic = self._settings.dead_letters
        if topic is None or not topic.written or not inserts:
            return None
        if topic.read:  # what is wrong with it has been told
            return inserts[0].target if inserts[0].kind == DEAD_LETTERS else None
        with self._problems.collecting(), self._problems.told_at(topic.place):
            for each in inserts:
                continuous.refuse_loop(each.query, self._store, topic.name, self._services, self._edges(inserts))
            return self._letters(topic, inserts[0].query)
        return None

    def _letters(self, topic: DeadLetterTopic, planned: PlannedQuery) -> Target:
        if topic.name in self._written:
            raise problem(
                topic.place,
                sqlstates.DATATYPE_MISMATCH,
                f'topic "{topic.name}" is a target of the program',
                "Dead letters have other records: name another topic.",
            )
        return dead_letters.target(
            topic, planned, self._settings, (self._schema, self._store), self._name, self._context, self._services
        )

    # --- loops ------------------------------------------------------------------------------------------------------
    def _check_loops(self, planned: Sequence[PlannedInsert]) -> None:
        edges = self._edges(planned)
        for each in planned:
            with self._problems.told_at(each.place):
                continuous.refuse_loop(each.query, self._store, each.target.topic, self._services, edges)

    def _edges(self, planned: Sequence[PlannedInsert]) -> Sequence[tuple[tuple[str, str], tuple[str, str]]]:
        return [
            ((source.store.id, source.entity), (self._store.id, each.target.topic))
            for each in planned
            for source in each.query.inputs
        ]


def _written_otherwise(insert: Insert) -> ProblemError:
    return problem(
        insert.place,
        sqlstates.DATATYPE_MISMATCH,
        f'an INSERT before it writes other records to topic "{insert.target}"',
        "All INSERTs into a topic have the same kind, fields, types and formats.",
    )


class _ToldError(Exception):
    """What it is about is among the problems already."""
