"""The session room: what a connected client may say, and in which order.

Start at ``backend`` (opens sessions: role, database, start-up settings) and ``session`` (one client: the wire's calls).
``dispatch`` finds who answers a statement: ``pulls`` (snapshots, with ``filling`` before a view is read), ``routed``
(the router's statements, kept until COMMIT inside a transaction block), ``commands`` (settings, transactions, prepared
statements), ``cursor_commands`` (cursors, COPY). What a session remembers is in ``state``: ``settings`` (rows in
``setting_table``, checks in ``setting_values``), ``transactions``, ``prepared``, ``portals``, ``cursors``. ``clock``
and ``deadlines`` stop what runs too long; ``results`` watches rows while they are read. ``buenavista`` and
``extensions`` carry what others wrote for buenavista.
"""
