"""PostgreSQL's text and binary forms: a module for each family of types, ``registry`` to choose, ``rows`` to frame."""
