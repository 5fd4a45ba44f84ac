"""Limits of Kinesis stores. Those that the service sets itself are in its documentation of quotas."""

from __future__ import annotations

KINESIS_TIMEOUT_S = 10.0  # for one request; a statement must not hang on a dead host
KINESIS_READS_PER_S = 5  # of one shard, by all that read it: the service's own quota
KINESIS_READ_BYTES_PER_S = 2 * 1024 * 1024  # of one shard, by all that read it: the service's own quota
KINESIS_GET_RECORDS_MAX = 10_000  # in one answer: the service's own bound
KINESIS_BACKOFF_LEAST_S = 0.25  # after a refused request; doubled with each further one
KINESIS_BACKOFF_MOST_S = 5.0
KINESIS_BUDGETS_MAX = 100_000  # shards whose quota is remembered
KINESIS_BUFFER_BYTES_MAX = 64 * 1024 * 1024  # fetched ahead of the batches, for one stream
KINESIS_FETCH_THREADS_MAX = 8  # for one stream
KINESIS_UNREAD_S = 30.0  # a stream of which nobody has taken anything for so long is not asked any more
KINESIS_RECORDS_PER_S = 1_000  # written to one shard at most: how many may lie between two moments
KINESIS_SHARDS_MAX = 20_000  # of a stream that is created
KINESIS_PARTITION_KEY_CHARACTERS_MAX = 256
KINESIS_PUT_RECORDS_MAX = 500  # in one request: the service's own bound
KINESIS_PUT_BYTES_MAX = 5 * 1024 * 1024  # in one request: the service's own bound
KINESIS_RECORD_BYTES_MAX = 1024 * 1024  # data and partition key of one record, by the service's default
