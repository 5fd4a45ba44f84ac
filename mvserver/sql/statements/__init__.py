"""Statements as frozen data: what the parser yields and the router dispatches on, a module for each group of them."""
