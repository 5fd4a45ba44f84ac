"""Comments as rows. One goes with its object: the tables of objects have triggers for that."""

from __future__ import annotations

from catalog.connection import CatalogConnection
from catalog.model import Comment


class Comments:
    def __init__(self, connection: CatalogConnection) -> None:
        self._connection = connection

    def all(self) -> tuple[Comment, ...]:
        rows = self._connection.read(
            "SELECT kind, oid, column_number, text FROM comments ORDER BY kind, oid, column_number"
        )
        return tuple(Comment(*row) for row in rows)

    def put(self, comment: Comment) -> None:
        """An empty text takes the comment away."""
        if not comment.text:
            self._connection.write(
                "DELETE FROM comments WHERE kind = ? AND oid = ? AND column_number = ?",
                (comment.kind, comment.oid, comment.column_number),
            )
            return
        self._connection.write(
            "INSERT INTO comments VALUES (?, ?, ?, ?) "
            "ON CONFLICT (kind, oid, column_number) DO UPDATE SET text = excluded.text",
            (comment.kind, comment.oid, comment.column_number, comment.text),
        )
