"""The PostgreSQL wire: bytes in, bytes out, and no knowledge of what answers.

``server`` and ``connection`` do the I/O; ``machine`` and ``conversation`` are the protocol without any. Values take
their forms from ``mvserver.types``, and ``mvserver.front`` says what is asked of a session.
"""
