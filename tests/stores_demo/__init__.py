"""``make demo-stores``: one story over five kinds of stores, for people to look at.

Users are in Kinesis, page views in Kafka, and accounts in a table of PostgreSQL. They are joined, and what comes of it
goes back to Kafka, to a Delta table in an S3 bucket, and to an Iceberg table. Kinesis, S3 and the workspace's catalog
are emulators; Kafka, PostgreSQL, Delta and Iceberg are the real ones.
"""
