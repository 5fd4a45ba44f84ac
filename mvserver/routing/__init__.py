"""The router: a table from statements to handlers, and the handlers, one file per statement."""
