"""The HTTP front end: statements, views and changes of views as JSON, for programs and pages that speak no wire.

It knows sessions by ``mvserver.front`` alone, as the wire does.
"""
