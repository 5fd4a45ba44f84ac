"""Statements on descriptor sources."""

from __future__ import annotations

from mvserver.sql.cursor import Cursor
from mvserver.sql.heads import Heads
from mvserver.sql.names import identifier, if_exists, if_not_exists
from mvserver.sql.properties import required_properties
from mvserver.sql.statements.base import Statement
from mvserver.sql.statements.descriptor_sources import (
    CreateDescriptorSource,
    DropDescriptorSource,
    ListDescriptors,
    ListDescriptorSources,
)


def _create(cursor: Cursor) -> Statement:
    guarded = if_not_exists(cursor)
    return CreateDescriptorSource(identifier(cursor), required_properties(cursor), guarded)


def _drop(cursor: Cursor) -> Statement:
    guarded = if_exists(cursor)
    return DropDescriptorSource(identifier(cursor), guarded)


def _sources(_: Cursor) -> Statement:
    return ListDescriptorSources()


def _descriptors(_: Cursor) -> Statement:
    return ListDescriptors()


HEADS: Heads = {
    ("create", "descriptor_source"): _create,
    ("drop", "descriptor_source"): _drop,
    ("list", "descriptor_sources"): _sources,
    ("show", "descriptor_sources"): _sources,
    ("list", "descriptors"): _descriptors,
    ("show", "descriptors"): _descriptors,
}
