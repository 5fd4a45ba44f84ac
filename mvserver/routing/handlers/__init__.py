"""One file per statement: ``FIELDS``, the columns of its result (None without rows), and ``run``, which does it.

``run(statement, context, services, work)`` validates everything first, then has its effects through ``work``, changes
the catalog in one transaction, and leaves the rest for after the commit. In a rehearsal it has no effect at all.
"""
