"""The PostgreSQL wire: bytes in, bytes out, and no knowledge of what answers.

``server`` and ``connection`` do the I/O, ``machine`` and ``conversation`` are the protocol without any, ``types`` has
the forms of values, ``backend`` says what is asked of whoever runs statements.
"""
