"""Which handler a statement goes to, and the handlers: one file per statement."""
