"""The statements about the session itself: settings, transactions, prepared statements."""

from __future__ import annotations

from collections.abc import Callable

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Field, Result
from mvserver.session.applications import Application
from mvserver.session.clock import StatementClock
from mvserver.session.copy_in import CopyCommands
from mvserver.session.cursors.cursor_commands import CursorCommands
from mvserver.session.reads.pulls import PullRunner
from mvserver.session.results import text_fields, text_rows
from mvserver.session.routed import RoutedRunner
from mvserver.session.settings.setting_table import SETTINGS
from mvserver.session.settings.setting_values import boolean, isolation
from mvserver.session.settings.settings import canonical
from mvserver.session.state import SessionState
from mvserver.sql.statements.base import Statement
from mvserver.sql.statements.copying import CopyFrom
from mvserver.sql.statements.cursors import CloseCursor, Fetch
from mvserver.sql.statements.relations import CreateVirtual
from mvserver.sql.statements.settings import Deallocate, Discard, Reset, Set, SetTransaction, Show, Unlisten
from mvserver.sql.statements.transactions import (
    Begin,
    BeginApplication,
    Commit,
    EndApplication,
    ReleaseSavepoint,
    Rollback,
    RollbackToSavepoint,
    Savepoint,
)

_TRANSACTION_SETTINGS = ("transaction_isolation", "transaction_read_only", "transaction_deferrable")
_ALL_NAMES = ("name", "setting", "description")


class Commands:
    """One method per statement kind; ``run`` finds it."""

    def __init__(
        self,
        state: SessionState,
        pulls: PullRunner,
        routed: RoutedRunner,
        cursors: CursorCommands,
        copies: CopyCommands,
    ) -> None:
        self._state = state
        self._pulls = pulls
        self._routed = routed
        self._cursors = cursors
        self._copies = copies
        self._methods: dict[type[Statement], Callable[..., Result]] = {
            Set: self._set,
            SetTransaction: self._set_transaction,
            Show: self._show,
            Reset: self._reset,
            Discard: self._discard,
            Unlisten: lambda statement, clock: Result("UNLISTEN"),
            Begin: self._begin,
            BeginApplication: self._begin_application,
            EndApplication: self._end_application,
            CreateVirtual: self._create_virtual,
            Commit: self._commit,
            Rollback: self._rollback,
            Savepoint: self._savepoint,
            ReleaseSavepoint: self._release_savepoint,
            RollbackToSavepoint: self._rollback_to_savepoint,
            Deallocate: self._deallocate,
            Fetch: cursors.fetch,
            CloseCursor: cursors.close,
            CopyFrom: copies.begin,
        }

    def run(self, statement: Statement, clock: StatementClock) -> Result:
        return self._methods[type(statement)](statement, clock)

    def fields(self, statement: Statement) -> tuple[Field, ...] | None:
        if isinstance(statement, Show):
            return text_fields(_ALL_NAMES if canonical(statement.name) == "all" else (self._show_name(statement.name),))
        if isinstance(statement, Fetch):
            return self._cursors.fetched_fields(statement)
        return None

    # --- settings ---------------------------------------------------------------------------------------------------
    def _set(self, statement: Set, clock: StatementClock) -> Result:
        key = canonical(statement.name)
        if key in ("role", "session_authorization"):
            self._set_role(key, statement.value, local=statement.local)
        elif key in _TRANSACTION_SETTINGS:
            self._set_transaction_setting(key, statement.value)
        elif statement.local and not self._state.transaction.in_block:
            self._state.settings.check(statement.name, statement.value)
            self._state.context.warning(
                "SET LOCAL can only be used in transaction blocks", sqlstate=sqlstates.NO_ACTIVE_SQL_TRANSACTION
            )
        else:
            self._state.settings.set(statement.name, statement.value, local=statement.local)
        if key == "search_path":
            self._state.follow_search_path()
        self._state.publish()
        return Result("SET")

    def _set_role(self, key: str, value: str | None, *, local: bool) -> None:
        """Who has logged in does not change: SET SESSION AUTHORIZATION names that one, or none."""
        if local and not self._state.transaction.in_block:
            self._state.context.warning(
                "SET LOCAL can only be used in transaction blocks", sqlstate=sqlstates.NO_ACTIVE_SQL_TRANSACTION
            )
            return
        if key == "role":
            self._state.set_role(value, local=local)
            return
        if value is not None and value not in ("default", self._state.role.name):
            if self._state.services.directory.role(value) is None:
                raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, f'role "{value}" does not exist')
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f'parameter "{key}" cannot be set to another role',
                hint="Use SET ROLE, or connect as that role.",
            )
        self._state.set_role(None, local=local)

    def _set_transaction_setting(self, key: str, value: str | None) -> None:
        text = self._state.settings.current[f"default_{key}"] if value is None else value
        if key == "transaction_isolation":
            self._set_modes("SET TRANSACTION", isolation(key, text), None)
        elif key == "transaction_read_only":
            self._set_modes("SET TRANSACTION", None, boolean(key, text) == "on")
        else:
            boolean(key, text)

    def _set_modes(self, command: str, level: str | None, read_only: bool | None) -> None:
        if not self._state.transaction.in_block:
            self._state.context.warning(
                f"{command} can only be used in transaction blocks", sqlstate=sqlstates.NO_ACTIVE_SQL_TRANSACTION
            )
            return
        self._state.transaction.set_modes(level, read_only)

    def _set_transaction(self, statement: SetTransaction, clock: StatementClock) -> Result:
        level = None if statement.isolation is None else isolation("transaction_isolation", statement.isolation)
        if not statement.session:
            self._set_modes("SET TRANSACTION", level, statement.read_only)
        else:
            if level is not None:
                self._state.settings.set("default_transaction_isolation", level)
            if statement.read_only is not None:
                self._state.settings.set("default_transaction_read_only", "on" if statement.read_only else "off")
        self._state.publish()
        return Result("SET")

    def _show_name(self, name: str) -> str:
        key = canonical(name)
        if key not in ("role", "all"):
            self._state.settings.get(name)
        row = SETTINGS.get(key)
        return row.name if row is not None else key

    def _show(self, statement: Show, clock: StatementClock) -> Result:
        key = canonical(statement.name)
        own = self._state.transaction_settings()
        if key == "all":
            rows = [(name, own.get(name, value), text) for name, value, text in self._state.settings.rows()]
            return text_rows("SHOW", _ALL_NAMES, rows)
        name = self._show_name(statement.name)
        value = own.get(key) or self._state.settings.get(statement.name)
        return text_rows("SHOW", (name,), [(value,)])

    def _reset(self, statement: Reset, clock: StatementClock) -> Result:
        if canonical(statement.name) == "all":
            role = self._state.settings.current["role"]
            self._state.settings.reset_all()
            self._state.settings.force("role", role)  # as in PostgreSQL, RESET ALL leaves it
            self._state.follow_search_path()
            self._state.publish()
            return Result("RESET")
        self._set(Set(statement.name, None), clock)
        return Result("RESET")

    def _discard(self, statement: Discard, clock: StatementClock) -> Result:
        what = statement.what.lower()
        if what == "all":
            if self._state.transaction.in_block:
                raise SqlError(sqlstates.ACTIVE_SQL_TRANSACTION, "DISCARD ALL cannot run inside a transaction block")
            self._state.discard_all()
        return Result(f"DISCARD {what.upper()}")

    # --- transactions -----------------------------------------------------------------------------------------------
    def _begin(self, statement: Begin, clock: StatementClock) -> Result:
        tag = "START TRANSACTION" if statement.text[:5].upper() == "START" else "BEGIN"
        level = None if statement.isolation is None else isolation("transaction_isolation", statement.isolation)
        if self._state.transaction.in_block:
            self._state.context.warning(
                "there is already a transaction in progress", sqlstate=sqlstates.ACTIVE_SQL_TRANSACTION
            )
            self._state.transaction.set_modes(level, statement.read_only)
        else:
            self._start_block(level, statement.read_only)
        self._state.publish()
        return Result(tag)

    def _start_block(self, level: str | None, read_only: bool | None) -> None:
        settings = self._state.settings
        self._state.transaction.begin(
            self._state.restore_point(),
            level or settings.current["default_transaction_isolation"],
            settings.flag("default_transaction_read_only") if read_only is None else read_only,
        )

    def _begin_application(self, statement: BeginApplication, clock: StatementClock) -> Result:
        if self._state.transaction.in_block:
            raise SqlError(
                sqlstates.ACTIVE_SQL_TRANSACTION,
                "an application cannot begin inside a transaction block",
                hint="Commit first.",
            )
        self._start_block(None, None)
        self._state.transaction.application = Application(statement.name)
        self._state.publish()
        return Result("BEGIN APPLICATION")

    def _create_virtual(self, statement: CreateVirtual, clock: StatementClock) -> Result:
        application = self._state.transaction.application
        if application is None:
            raise SqlError(
                sqlstates.NO_ACTIVE_SQL_TRANSACTION,
                f"a virtual {statement.kind} can only be created in an application",
                hint="Put it between BEGIN APPLICATION name and END APPLICATION.",
                position=statement.name.position,
            )
        self._state.transaction.application = application.with_virtual(statement)
        return Result(f"CREATE VIRTUAL {statement.kind.upper()}")

    def _end_application(self, statement: EndApplication, clock: StatementClock) -> Result:
        application = self._state.transaction.application
        if application is None:
            raise SqlError(sqlstates.NO_ACTIVE_SQL_TRANSACTION, "there is no application in progress")
        try:
            if statement.properties:
                raise SqlError(
                    sqlstates.FEATURE_NOT_SUPPORTED,
                    "properties of an application are not supported",
                    hint="Give each statement its own, in its WITH or QUERY WITH.",
                    position=statement.properties.items_[0].position,
                )
            if self._state.transaction.status != "E":
                application.check_all_read()
        except SqlError:
            self.finish(commit=False)  # as a COMMIT that fails
            raise
        ended = self._commit_block(chain=False, clock=clock)
        return ended if ended.tag == "ROLLBACK" else Result("END APPLICATION")

    def _commit(self, statement: Commit, clock: StatementClock) -> Result:
        if self._state.transaction.application is not None and self._state.transaction.status != "E":
            raise SqlError(
                sqlstates.ACTIVE_SQL_TRANSACTION,
                "an application ends with END APPLICATION",
                hint="ROLLBACK leaves it without effect.",
            )
        return self._commit_block(chain=statement.chain, clock=clock)

    def _commit_block(self, *, chain: bool, clock: StatementClock) -> Result:
        transaction = self._state.transaction
        if transaction.status == "E":
            return self._end(commit=False, chain=chain)
        if not transaction.in_block:
            self._no_transaction(chain, "COMMIT AND CHAIN")
        else:
            try:
                self._cursors.hold()
                self._pulls.end_transaction()
                self._routed.carry_out(clock)
                self._copies.write(clock)
            except Exception:
                self.finish(commit=False)  # a COMMIT that fails has ended the transaction
                raise
        return self._end(commit=True, chain=chain)

    def _rollback(self, statement: Rollback, clock: StatementClock) -> Result:
        if not self._state.transaction.in_block:
            self._no_transaction(statement.chain, "ROLLBACK AND CHAIN")
        return self._end(commit=False, chain=statement.chain)

    def _no_transaction(self, chain: bool, command: str) -> None:
        if chain:
            raise SqlError(sqlstates.NO_ACTIVE_SQL_TRANSACTION, f"{command} can only be used in transaction blocks")
        self._state.context.warning("there is no transaction in progress", sqlstate=sqlstates.NO_ACTIVE_SQL_TRANSACTION)

    def _end(self, *, commit: bool, chain: bool) -> Result:
        isolation_was, read_only_was = self._state.transaction.isolation, self._state.transaction.read_only
        self.finish(commit=commit)
        if chain:
            self._start_block(isolation_was, read_only_was)
            self._state.publish()
        return Result("COMMIT" if commit else "ROLLBACK")

    def finish(self, *, commit: bool) -> None:
        """Ends whatever transaction there is, implicit or not."""
        was_block = self._state.transaction.in_block
        start = self._state.transaction.end()
        self._state.portals.clear()
        if commit:
            self._state.cursors.end_transaction()
        changed = self._state.settings.end_local() if commit else self._state.restore(start)
        if changed or was_block:
            self._state.publish()
        self._cursors.end_transaction()
        self._pulls.end_transaction()

    def _savepoint(self, statement: Savepoint, clock: StatementClock) -> Result:
        self._state.transaction.savepoint(statement.name, self._state.restore_point())
        return Result("SAVEPOINT")

    def _release_savepoint(self, statement: ReleaseSavepoint, clock: StatementClock) -> Result:
        self._state.transaction.release(statement.name)
        return Result("RELEASE")

    def _rollback_to_savepoint(self, statement: RollbackToSavepoint, clock: StatementClock) -> Result:
        self._state.restore(self._state.transaction.rollback_to(statement.name))
        self._state.publish()
        return Result("ROLLBACK")

    # --- prepared statements ----------------------------------------------------------------------------------------
    def _deallocate(self, statement: Deallocate, clock: StatementClock) -> Result:
        if statement.name is None:
            self._state.prepared.clear()
            return Result("DEALLOCATE ALL")
        self._state.prepared.deallocate(statement.name)
        return Result("DEALLOCATE")
