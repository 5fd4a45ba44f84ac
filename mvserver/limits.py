"""Every limit of the server, by name, with its unit and its reason."""

from __future__ import annotations

# --- the wire -------------------------------------------------------------------------------------------------------
STARTUP_PACKET_BYTES_MAX = 10_000  # PostgreSQL's own bound
MESSAGE_BEFORE_READY_BYTES_MAX = 64 * 1024  # nothing longer is legal before log-in
MESSAGE_BYTES_MAX = 16 * 1024 * 1024  # statement text, parameters, COPY data
SHORT_MESSAGE_BYTES_MAX = 10_000  # messages that hold a name at most; PostgreSQL's own bound
AUTHENTICATION_TIMEOUT_S = 60.0
CONNECTIONS_MAX = 200
SUPERUSER_RESERVED_CONNECTIONS = 3  # PostgreSQL's: of those, so many are left when the others are taken
WRITE_HIGH_WATER_BYTES = 4 * 1024 * 1024  # a client that stops reading costs at most this and one chunk
RESULT_CHUNK_ROWS = 8_192
RESULT_CHUNK_BYTES = 512 * 1024  # rows are framed and handed to the socket in pieces of about this size
READ_AHEAD_BYTES_MAX = 1024 * 1024  # what a client may send while its statement runs, before reading pauses
CONNECTIONS_REFUSED_MAX = 50  # over the cap: so many are told 53300, the rest are dropped unheard
DESCRIPTORS_BESIDE_CLIENTS = 2_000  # open files and sockets: the catalog, DuckDB, brokers, some for each pipeline
DESCRIPTORS_BESIDE_CLIENTS_MIN = 300  # with fewer the log says so at the start
CANCEL_THREADS = 2  # cancels must not queue behind the statements they are meant to stop
CLOSE_LINGER_S = 5.0  # how long the last bytes to a client that is hung up on may take
ENGINE_STOP_S = 8.0  # at shutdown: how long batches that are being committed, and Spark, may take to end
FORGET_WAIT_S = 5.0  # how long a statement waits for a source that drops what it keeps for a reader that is gone
START_ANEW_DRAIN_S = 2.0  # before the server starts itself anew: how long running statements may take to end
START_ANEW_SOON_S = 60.0  # a server that begins again so soon after the last time pauses first
START_ANEW_PAUSE_S = 10.0
SHUTDOWN_GRACE_S = 5.0  # after the drain: how long cancelled statements may take to end
LOGIN_GRACE_S = 1.0  # at a shutdown: how long a client that is only just logging in may take to be told
ARRAY_DIMENSIONS_MAX = 6  # PostgreSQL's MAXDIM
PARAMETERS_INFERRED_SINGLY_MAX = 16  # of unknown types in one statement: each is a binding; those of more are guessed
PARAMETERS_READ_AT_ONCE_BYTES = 64 * 1024  # of larger ones the reading can be stopped

# --- HTTP -----------------------------------------------------------------------------------------------------------
HTTP_CONNECTIONS_MAX = 1_000
HTTP_HEADER_BYTES_MAX = 8_190  # of a request's first line, and of each header
HTTP_KEEP_ALIVE_S = 75.0  # how long a connection may wait for its next request
HTTP_BODY_S = 60.0  # how long a client may take to send a body
HTTP_STALLED_S = 120.0  # how long a client may take no byte of an answer: a session waits for it
HTTP_VIEWS_MAX = 16  # of one stream of changes
MCP_ROWS, MCP_ROWS_MAX = 100, 1_000  # of an assistant's query, where it names no number, and at most
MCP_BYTES_MAX = 256 * 1024  # of their JSON: an assistant reads them all
MCP_QUERY_MS = 10_000
HTTP_CLAIMS_MAX = 32  # of one ticket
HTTP_CLAIM_BYTES_MAX = 1_000  # of the value of one: a ticket stands in an address
HTTP_TICKET_LENGTH_MAX = 6_000  # characters of a ticket, so that views and a position fit beside it into the first line
HTTP_SNAPSHOT_BYTES_MAX = 32 * 1024 * 1024  # of a view's rows as JSON at the beginning of a stream, once for all
HTTP_EPOCH_BYTES_MAX = 16 * 1024 * 1024  # of one epoch's changes as JSON; readers of more begin anew
HTTP_CHANGES_BYTES_MAX = 8 * 1024 * 1024  # the last changes of a view as JSON, for all who come behind
HTTP_COALESCED_BYTES_MAX = 64 * 1024 * 1024  # of changes as JSON, to be read for a client that is behind them
HTTP_REPLAYED_BYTES_MAX = 1024 * 1024  # of changes behind a snapshot, before another one is made
HTTP_PENDING_BYTES_MAX = 4 * 1024 * 1024  # of events that a reader has not taken; one of more gets them as one
HTTP_UNREAD_BYTES_MAX = 256 * 1024  # in a reader's socket, before its events wait
HTTP_FEED_IDLE_S = 60.0  # how long a view is watched on when its last reader has gone
HTTP_HEARTBEAT_S = 15.0  # between two signs of life on a stream without events
HTTP_RETRY_MS = 1_000  # after which a browser comes back
HTTP_POLL_S = 20.0  # how long a poll waits for a change, unless it says so
HTTP_POLL_MAX_S = 60.0
HTTP_POLL_FRESH_S = 5  # how long a cache may give a poll's answer to others
HTTP_TICKET_S = 60  # how long a ticket lasts at most
HTTP_REVIEW_S = 1.0  # after a change of definitions: how long a stream may go on that its role may not read any more
HTTP_PREFLIGHT_S = 600  # how long a browser may remember what another origin may ask

# --- log-in ---------------------------------------------------------------------------------------------------------
SCRAM_ITERATIONS = 4_096  # of a new password: PostgreSQL's, and the least that RFC 7677 allows
SASL_MESSAGE_BYTES_MAX = 1_024  # PostgreSQL's own bound
PLAIN_PASSWORD_ITERATIONS_MAX = 100_000  # of a password that the server hashes itself: some 50 ms
AUTHENTICATION_FAILURES_MAX = 10  # of one role from one address within the window; more are refused unheard
AUTHENTICATION_FAILURES_OF_ADDRESS_MAX = 100  # of all roles from one address: guessing one password for many roles
AUTHENTICATION_FAILURE_WINDOW_S = 60.0
AUTHENTICATION_FAILURES_REMEMBERED_MAX = 10_000  # pairs of address and role; the oldest is forgotten first

# --- statements -----------------------------------------------------------------------------------------------------
STATEMENT_BYTES_MAX = 1024 * 1024  # checked before the parser sees the text
STATEMENT_DEPTH_MAX = 40  # nested brackets and CASEs; sqlglot recurses, and Python's stack is finite
STATEMENTS_PER_TEXT_MAX = 1_000
STATEMENT_CHAIN_MAX = (
    500  # operands of one chain of operators (AND and OR apart): a chain is a tree as deep as it is long
)
STATEMENT_TOKENS_MAX = 30_000  # tokens besides those of lists of literals; bounds the time of one parse
PARSE_STEPS_PER_TOKEN_MAX = 50  # how often a parser may read a token again; texts that make sense need some three
TEXT_TOKENS_MAX = 400_000  # tokens of any kind in one text: 50,000 rows of VALUES, 100,000 numbers behind IN, and room
COLLECT_AFTER_MIDDLE_COLLECTIONS = 2  # of Python's collector: about 17,000 new objects, looked at in some 5 ms
COLLECT_ALL_AFTER_OBJECTS = 100_000  # that have come to stay since all of them were last looked at
COLLECT_ALL_ANYWAY_AFTER_OBJECTS = 2_000_000  # even while large statements are at work: some 300 MB
RECURSION_LIMIT = 6_000  # Python frames: what the deepest accepted statement needs, with room for its readers
ERROR_EXCERPT_CHARACTERS_MAX = 200  # of a statement's text quoted in a syntax error
LENSES_PROBLEMS_SHOWN_MAX = 100  # errors of one program in the dialect lenses that are told one by one
LENSES_WARNINGS_SHOWN_MAX = 20  # of one such program
LENSES_STATEMENTS_MAX = 500  # of one such program: each INSERT is a query
IDENTIFIER_BYTES_MAX = 63  # PostgreSQL's NAMEDATALEN - 1
FUNCTION_BODY_BYTES_MAX = 64 * 1024  # of a function of one's own: each plan that calls it has it in its program
FUNCTION_PARAMETERS_MAX = 100  # PostgreSQL's FUNC_MAX_ARGS
FUNCTION_MEMORY_MB_MIN = 16  # of the process that runs one: less would not hold a few records
AGGREGATE_VALUES_MAX = 1_000_000  # of a group, that an aggregate of one's own is called with
FUNCTION_TIMEOUT_S = 10.0  # of one call
FUNCTION_MEMORY_BYTES = 256 * 1024 * 1024  # of the process that runs one, besides Python itself
ENUM_LABELS_MAX = 10_000  # of one type: each plan that names it has all of them in its text
COLUMNS_MAX = 1_600  # PostgreSQL's
VIEW_CHARACTERS_MAX = 64 * 1024  # of the SELECT of a view, which is parsed for each plan that reads it
POLICY_CHARACTERS_MAX = 16 * 1024  # of its condition, which is parsed for each plan that reads its view
INDEXES_MAX = 100  # of one materialized view: each is a note in the catalog
EXPANDED_VIEWS_MAX = 256  # in one query; a view over views counts them each time that it is read
SELECT_LIST_MAX = 1_664  # PostgreSQL's MaxTupleAttributeNumber
TOP_VALUES_MAX = 10_000  # of TOPK: each reader of the view gets so many a row
REPEATED_ELEMENTS_MAX = 10_000  # of an array that repeats a value
GROUPING_SETS_MAX = 64  # of one GROUP BY: each record is merged into a group of each set
TEMPORAL_JOIN_IDLE_MS = 3_000  # without records for so long, a changelog does not hold back the stream joined with it
JOIN_SILENCE_MS = 5_000  # so long a partition that has shown nothing holds back what those beside it have shown
CLOCK_STEP_S = 1.0  # the system's clock was set if it went by so much more or less than time did between two looks
TEMPORAL_JOIN_KEPT_MS = 3_600_000  # of event time: so far behind its stream a row still sees its own time's version
JOIN_WITHIN_DAYS_MAX = 366  # of an interval join: rows are kept that long
AGGREGATION_LEVELS_MAX = 4  # an aggregate of aggregates has two; each has a state, and a pipeline above it
UNION_QUERIES_MAX = 32  # of one UNION ALL: each is read by itself
QUERY_LEVELS_MAX = 32  # sub-queries and WITH queries that read each other; each level is bound by recursion
EXPRESSION_NODES_MAX = 5_000  # operations of a column of a sub-query, which the query around it may use many times
LOWERED_EXPRESSION_CHARS_MAX = 256 * 1024  # an expression as engine text; lowerings may repeat an argument
GROWN_TEXT_CHARACTERS_MAX = 1024 * 1024  # of what a function of a continuous query makes that can grow without bound
TEXT_COPIES_MAX = 8  # of a column in one value: more are measured before they are made
TEXT_CONSTANT_CHARACTERS_MAX = 64 * 1024  # of what is no copy of a column in one value: more is measured, too
LIVE_SLOTS = 64  # task slots of live lanes, one a partition: threads that wait most of the time
BATCH_TIMEOUT_S = 60.0  # of evaluation, before a batch is tried with fewer records
TASK_ROWS_BYTES_MAX = 128 * 1024 * 1024  # of texts that one task of Spark sends; a batch of more is tried in parts
NUMBER_TEXT_BYTES_MAX = 1_000  # of a number as text: reading takes the square of its digits
VALUE_COPIES_MAX = 64  # of a column in one value, such as an array of it: more are refused
TEXT_OF_VALUE_CHARACTERS_MAX = 64 * 1024 * 1024  # what the parts of one value may come to, each with its own bound
PREPARED_STATEMENTS_MAX = 1_000  # per session
PREPARED_BYTES_OF_SESSION_MAX = 64 * 2**20  # texts, trees and columns of prepared statements
PREPARED_BYTES_OF_ROLE_MAX = 192 * 2**20
PREPARED_BYTES_MAX = 256 * 2**20
PREPARED_TREE_CHARACTERS_MAX = 1_024  # of a longer text the tree is not kept: it is parsed again when it is needed
PORTALS_MAX = 200  # per session
CURSORS_MAX = 200  # per session: DECLARE; each may hold an open result
CURSOR_ROWS_BYTES_MAX = 128 * 1024 * 1024  # per session: rows that SCROLL and WITH HOLD cursors keep in memory
CURSOR_ROWS_BYTES_OF_ROLE_MAX = 384 * 2**20
CURSOR_ROWS_BYTES_OF_SERVER_MAX = 512 * 2**20

# --- COPY FROM ------------------------------------------------------------------------------------------------------
COPY_LINE_BYTES_MAX = 16 * 1024 * 1024  # of one row; a record of a store may have no more
COPY_MEMORY_BYTES = 8 * 1024 * 1024  # of one COPY's records before they go to a file: nothing is written before the end
COPY_BYTES_MAX = 1024 * 1024 * 1024  # of the records of one COPY, and of all in one transaction

# --- transactions ---------------------------------------------------------------------------------------------------
IDLE_IN_TRANSACTION_TIMEOUT_S = 60.0  # a pinned snapshot slows every merge
PINNED_SNAPSHOT_AGE_MAX_S = 600.0  # REPEATABLE READ: what is pinned cannot be freed, however busy its session
SAVEPOINTS_MAX = 1_000  # per transaction: each keeps the settings of its moment
QUEUED_STATEMENTS_MAX = 1_000  # DDL waiting for one COMMIT

# --- sessions -------------------------------------------------------------------------------------------------------
READ_WHILE_FILLING_WAIT_S = 60.0  # how long a SELECT waits for a view that is being filled
FRESHNESS_WAIT_S = 10.0  # how long a SELECT waits for a view to come to the end that its source has
CUSTOM_SETTINGS_MAX = 100  # "a.b" settings a client may invent
SETTING_VALUE_BYTES_MAX = 8_192
SPOOLED_RESULT_BYTES_MAX = 256 * 1024 * 1024  # the rest of an open portal, when its pinned cursor is needed again
SPOOLED_RESULTS_BYTES_OF_ROLE_MAX = 384 * 2**20
SPOOLED_RESULTS_BYTES_MAX = 512 * 2**20  # of all sessions
VIEW_STATES_REMEMBERED_MAX = 1_000  # per session, each for about a second
COMMENTED_CALL_CHARACTERS_MAX = 8_192  # of an extension call with comments inside
LOGGED_TEXT_CHARACTERS_MAX = 65_536  # SQL in a log line

# --- DuckDB ---------------------------------------------------------------------------------------------------------
DUCKDB_MEMORY_DEFAULT = "2GB"
DUCKDB_THREADS = 2
DATABASE_CLOSE_S = 5.0  # how long statements that are interrupted at the end may take to see it
QUERY_MEMORY_DEFAULT = 1024**3  # what cannot go to disk: half of DuckDB's, so that one query leaves some to others
PROCESS_MEMORY_BESIDE = 1024**3  # of the process, beside what DuckDB, one query and the finished rows may have
PROCESS_MEMORY_SLACK = 1 / 16  # of its limit: so far above it, large blocks are refused to the process
MERGES_OUT_OF_MEMORY_MAX = 8  # of one view, one after the other, in a minute: then it is FAILED alone
LARGE_BLOCK_BYTES = 2 * 2**20  # more than DuckDB needs at a time to commit a batch
WRITE_AHEAD_LOG_BYTES_MAX = 128 << 20  # then it is folded into the file; a start after a kill reads 100 MB a second
DUCKDB_CHECKPOINT = "1TB"  # DuckDB's own threshold, which is of a guess: see spark_sinks.duckdb.ledger.write_ahead_log
DAMAGED_FILES_MAX = 50  # set aside within DAMAGE_WITHIN_S; one more stops the server: the disk is not to be trusted
DAMAGE_WITHIN_S = 600
DUCKDB_SPILL_MAX = "20GB"  # sorts and joins that do not fit into memory; the folder is emptied at start

# --- pull queries ---------------------------------------------------------------------------------------------------
BINDINGS_MAX = 8  # queries bound by DuckDB at the same time; those that were left do not count
ENGINE_THREADS_MAX = 512  # threads for work in DuckDB that can be left; far more than the other limits let be needed
LEFT_AFTER_S = 0.4  # a statement that is stopped waits so long for DuckDB to see it, and then leaves
LEFT_WORK_OF_SESSION_MAX = 2  # statements left behind that still use a processor and memory
LEFT_WORK_OF_ROLE_MAX = 6
ARRAY_ITEMS_READ_MAX = 10_000  # of a parameter, by DuckDB with all threads waiting; a longer array goes to it as a text
CONSTANT_TEXT_BYTES_MAX = 1024 * 1024  # of what repeat, lpad and their like make of constants: evaluated while binding
REPEATED_TEXT_BYTES_MAX = 64 * 1024  # of one such value otherwise; DuckDB makes 2,048 without a look for an interrupt
REPLACED_TEXT_GROWTH_MAX = 64  # by all replace and regexp_replace of a query; where it can be more, each is measured
REPLACED_TEXT_BYTES_MAX = 256 * 1024  # of what one of those can make at most
MACRO_REPEATS_MAX = 5_000  # tokens that a call of a macro repeats of its arguments; of more, it binds them once
REPEATED_NODES_MAX = 400  # of an operand that a rewriting copies, as each part of to_char's pattern does
REWRITTEN_NODES_MIN = 3_000  # by which rewrites may make a tree larger in any case
REWRITTEN_TIMES_MAX = 8  # by which they may do so beyond, in sizes of the tree
EXPANDED_TOKENS_MAX = 300_000  # of an expression with its macros: DuckDB binds some 100,000 a second
SERIES_ITEMS_MAX = 1_000_000  # of a generate_series that is no source of rows: a list, made before it is used
SERIES_ITEMS_OF_ROW_MAX = 100_000  # where its bounds are computed for each row: lists of 2,048 rows are made at a time
PLAN_CACHE_ENTRIES = 512  # bound pull queries kept by text and scope
PLAN_CACHE_BYTES = 64 * 2**20  # of all of them; one that takes more than an eighth is kept for nobody
TEMPLATE_CHARACTERS_MAX = 8_000  # a longer text is planned for itself: a look-up of 200 keys is shorter
STATEMENT_CACHE_ENTRIES = 64  # parsed DuckDB statements kept per cursor
STATEMENT_CACHE_CHARACTERS = 32_768  # of all of them; the tree of a text takes some 200 times as many bytes
STATEMENT_KEPT_CHARACTERS_MAX = 16_384  # DuckDB parses a longer one each time, but keeps nobody waiting for it
LITERALS_APART_MAX = 500  # of an IN list, or rows of VALUES: more stand in the tree as one node
ROW_LITERALS_APART_MAX = 5_000  # of all rows of VALUES; as above where rows are wide
OPERATIONS_CHECKED_MAX = 500  # of a pull query: whether the types of their operands go together
EXPRESSIONS_BOUND_APART_MAX = 200  # one by one, to learn their types or which of them is wrong
AT_ONCE_S_MAX = 0.002  # a query whose last runs took no longer is answered on the event loop, without a worker
EVENT_LOOP_HELD_S_MAX = 0.02  # then such a query is interrupted, and begins again on a worker
RESET_BYTES_MAX = 32  # a longer text is not looked at as a DISCARD ALL
AT_ONCE_MESSAGES_BYTES_MAX = 16 * 1024  # more bytes of messages are read by a worker
FEW_ROWS_MAX = 200  # a result of so many rows is fetched whole and answered in one piece
SHARED_RESULT_BYTES_MAX = 256 * 1024  # of one result that is shared and kept; a larger one is each reader's own
SHARED_RESULTS_BYTES_MAX = 32 * 1024 * 1024  # of all that are kept until their views change
FINISHED_ROWS_ASKED_MIN = 100  # look-ups and ranges of a view within the time below: from then on they are
FINISHED_ROWS_ASKED_WITHIN_S = 5.0
FINISHED_ROWS_IDLE_S = 60.0  # not asked for so long, they are let go
FINISHED_ROWS_RETRY_S = 30.0  # after a view was found too large, or to change too fast
FINISHED_ROWS_KEYS_MAX = 20_000  # changed keys that wait to be read again; of more, the view is read anew when asked
FINISHED_ROWS_FORMS_MAX = 64  # choices of columns and formats in which the rows of a view are kept as messages
SLEEP_MAX_S = 3_600.0  # pg_sleep
PULL_CONCURRENCY = 16  # queries at work in DuckDB at the same time
PARSED_TEXTS_MAX = 512  # SELECTs kept parsed, for drivers that send the same text again and again
PARSED_CHARACTERS_MAX = 131_072  # of all of them: some 60,000 objects
PARSED_TEXT_CHARACTERS_MAX = 16_384  # a longer text is parsed each time

# --- push queries ---------------------------------------------------------------------------------------------------
PUSH_QUERIES_MAX = 32  # of the server: each makes the batches of its source a little dearer
PUSH_BATCH_RECORDS_MAX = 20_000  # a larger batch is read again by the push query alone, in pieces of this size
PUSH_STATES_MAX = 8  # of those, queries that keep groups or rows: each has tables, and over a join threads
PUSH_STATE_ROWS_MAX = 5_000_000  # groups and rows that such a query keeps; above, it ends
PUSH_OUTBOX_ROWS_MAX = 100_000  # its rows that the client has not taken, in DuckDB: above, it takes no batch
PUSH_PIECE_ROWS = 8_192  # of those, read and removed at a time
PUSH_WAITING_BYTES_MAX = 8 * 1024 * 1024  # rows that the client has not taken: above, no more are read for it
BOUNDED_READS_MAX = 2  # streams read to their present end at the same time: each holds its rows in memory
BOUNDED_READ_BYTES_MAX = 256 * 1024 * 1024  # rows of one such stream
BOUNDED_ROUND_RECORDS_MAX = 100_000  # read by Spark at a time; a cancel is seen between two rounds
PUSH_BUFFER_BYTES_MAX = 64 * 1024 * 1024  # what one more piece may make of them; above, the push query ends

# --- histories of views ----------------------------------------------------------------------------------------------
HISTORY_RETENTION_S = 60.0  # how long a view's changes are kept, and go on being kept when nobody watches it any more
HISTORY_ROWS_MAX = 1_000_000  # changes of one view that are kept; above, the oldest go
HISTORY_BYTES_MAX = 256 * 1024 * 1024  # the same in bytes, as Arrow has them
HISTORY_TRIMMED_ROWS = 50_000  # changes that are too old are removed in steps of so many
HISTORY_LOOK_S = 1.0  # between two looks for what is too old, and for views that nobody watches
HISTORY_TAIL_BYTES_MAX = 4 * 1024 * 1024  # the last changes of a view that is watched, in memory for all who watch it
HISTORY_PIECE_ROWS = 8_192  # changes read from the log at a time
HISTORIES_MAX = 64  # views whose changes are kept because somebody watches them
WATCHES_MAX = 1_000  # readers of histories at the same time

# --- Spark's JVM -----------------------------------------------------------------------------------------------------
SPARK_JVM_START_S = 300.0  # for the process to be up; on a busy machine a hundred times what it takes alone
SPARK_START_S = 600.0  # for a whole start, with the session and its warming up; a JVM that takes longer is ended
SPARK_PING_S = 1.0  # between two questions to the JVM
SPARK_SILENT_S = 8.0  # without an answer for so long, Spark counts as standing still
SPARK_RESTARTS_PERIOD_S = 3_600.0  # in which the setting spark_restarts counts
SPARK_LASTED_S = 120.0  # a JVM that has run for so long is started again without a pause
SPARK_ENDING_S = 5.0  # how long a JVM that answers no more may take to end by itself
SPARK_REAPED_S = 1.0  # how long a JVM that was killed may take to be gone, where the server is about to end
SPARK_NOTICED_S = 10.0  # how long a failed call waits for word that the JVM has ended
SPARK_DYING_S = 30.0  # the same where the error says that the JVM is about to end
SPARK_CRASHES_OF_A_BATCH_MAX = 2  # of the JVM, by itself, at the same batch: its source is isolated
SPARK_KILLS_OF_A_BATCH_MAX = 3  # the same where somebody else may have ended the JVM, or the server
SPARK_READ_REFUSED_S = 600.0  # after the last of these, where a statement had read them
SPARK_SUSPECTED_S = 21_600.0  # a suspicion that is not confirmed ends; longer than the pause of a Spark that ends often
PROBATION_RECORDS_MAX = 10_000  # of a batch at which the JVM has ended before
BATCHES_IN_PROGRESS_MAX = 256  # that are noted for the next start of the server; more are not

# --- the catalog ----------------------------------------------------------------------------------------------------
CATALOG_BUSY_TIMEOUT_S = 10.0  # another program (a backup) may hold the file's lock for a moment

# --- stores ---------------------------------------------------------------------------------------------------------
CONFIG_FILE_BYTES_MAX = 64 * 1024  # of a store's 'config_file'

# --- filling a view beside live ones
FILL_EVALUATION_S = 0.4  # of a round: so long do live batches have fewer of Spark's task slots
FILL_COMMIT_S = 0.1  # of a round: so long may it hold up the commit of a live batch

# --- what queries write elsewhere -----------------------------------------------------------------------------------
OUTBOX_ROWS_MAX = 1_000_000  # rows that wait to be sent: above, their query takes no batch until there are fewer

# --- windows --------------------------------------------------------------------------------------------------------
WINDOWS_PER_RECORD_MAX = 1_000  # of HOP and CUMULATE: each is a row of the batch
LATE_ROWS_KEPT_MAX = 100_000  # per view, the newest
