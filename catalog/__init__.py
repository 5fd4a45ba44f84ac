"""The durable truth: every definition and the position at which each query attached, in one SQLite file.

``catalog.store.Catalog`` is the way in; ``catalog.model`` has the records.
"""
