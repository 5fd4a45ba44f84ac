"""The program ``mvserver``: serve, init, check, version. Errors go to standard error as they would go to a client."""

from __future__ import annotations

import argparse
import getpass
import importlib.metadata
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from mvserver import allocation, config, sqlstates
from mvserver.errors import SqlError

_EXIT_REFUSED = 2  # the settings or the machine are not as they must be
_EXIT_MISSING = 1


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        if options.command == "serve":
            _serve(options)
        if options.command == "check":
            return _check(options)
        if options.command == "init":
            return _init(options)
    except SqlError as error:
        print(_printed(error), file=sys.stderr)
        return _EXIT_REFUSED
    print(f"mvserver {version()}")
    return 0


def version() -> str:
    try:
        return importlib.metadata.version("mvserver")
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _serve(options: argparse.Namespace) -> NoReturn:
    settings = _settings(options)
    allocation.prepare()
    from mvserver.process_end import end_at_once, tell_of_crashes
    from mvserver.start import run  # the other commands do not need what it imports

    tell_of_crashes()
    try:
        code = run(settings)
    except SqlError as error:
        print(_printed(error), file=sys.stderr)
        code = _EXIT_REFUSED
    # All is closed and on disk. The interpreter's own end would wait for threads that may still sit in a library, and
    # those libraries would print which of their objects they find alive.
    end_at_once(code)


def _check(options: argparse.Namespace) -> int:
    from mvserver import machine

    findings = machine.examine(_settings(options))
    for finding in findings:
        print(f"{'ok     ' if finding.good else 'MISSING'}  {finding.what}")
        for line in finding.advice.splitlines():
            print(f"         {line}")
    return 0 if all(finding.good or finding.optional for finding in findings) else _EXIT_MISSING


def _init(options: argparse.Namespace) -> int:
    settings = _settings(options)
    from mvserver import first_password
    from mvserver.private_files import keep_private, refusing_unusable

    with refusing_unusable(settings.data_dir):
        keep_private(settings.data_dir, settings.data_dir / "files")
    password = first_password.take() or _asked_password()
    role = first_password.initialize(settings.data_dir, password, settings.password_encryption)
    print(f'the password of role "{role}" is set in {settings.data_dir}')
    return 0


def _asked_password() -> str:
    """Typed twice at a terminal, else the first line of what is piped in."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    password = getpass.getpass("Password of the first superuser: ")
    if getpass.getpass("Again: ") != password:
        raise SqlError(sqlstates.INVALID_PASSWORD, "the passwords differ")
    return password


def _settings(options: argparse.Namespace) -> config.ServerSettings:
    given = vars(options)
    flags = {row.name: given[row.name] for row in config.TABLE if given.get(row.name) is not None}
    return config.load(flags, config_file=options.config)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mvserver", description="A materialized-view query server over the PostgreSQL protocol."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version()}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, words in (
        ("serve", "run the server until SIGTERM"),
        ("init", "set the first superuser's password, and make the data directory where there is none"),
        ("check", "say what this machine lacks, and where to get it"),
    ):
        command = commands.add_parser(
            name,
            help=words,
            description=words[0].upper() + words[1:] + ".",
            epilog="Each setting is also a variable (--data-dir is MVSERVER_DATA_DIR) and a key of the TOML file "
            "(data_dir). A flag wins over a variable, a variable over the file.",
        )
        command.add_argument("--config", type=Path, metavar="FILE", help="TOML file with settings")
        for row in config.TABLE:
            default = row.default.replace("%", "%%") or "nothing"
            words_ = f"{row.doc} ({row.type.label}, default {default})".replace("{data_dir}", "DATA_DIR")
            command.add_argument(row.flag, dest=row.name, metavar=row.type.label.split()[0].upper(), help=words_)
    commands.add_parser("version", help="print the version")
    return parser


def _printed(error: SqlError) -> str:
    lines = [f"mvserver: {error.message}"]
    if error.detail:
        lines.append(f"DETAIL:  {error.detail}")
    if error.hint:
        lines.append(f"HINT:  {error.hint}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
