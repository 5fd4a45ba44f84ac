"""Rows that a client sends as data, in PostgreSQL's text, CSV and binary forms of COPY."""
