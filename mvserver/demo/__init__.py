"""The product shown on a fresh machine: a program that a person runs first, and a check that counts.

``python -m mvserver.demo`` (``make demo``) feeds clicks as files to a server that it starts; ``python -m
mvserver.demo.flights`` (``make demo-kafka``) feeds a year of real flights through a real Apache Kafka. Both are clients
only: they know the server by its command line, its wire and what it reads, as any user's program would, and both keep
a count of their own to compare the views with.
"""
