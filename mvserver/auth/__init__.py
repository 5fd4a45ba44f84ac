"""Authentication that every protocol front end shares: kept passwords, SCRAM, the check of an answer, failure counts.

Nothing here does I/O with a client. ``password_source`` alone knows the catalog; the front ends know only the rest.
"""
