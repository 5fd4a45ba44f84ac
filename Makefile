# Everything is run from here; `make help` lists the targets. Nothing is installed outside .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: help venv demo demo-kafka demo-stores test test-night test-oracle corpus check lint types style fast format bench clean

help:
	@echo "make demo [DEMO_SECONDS=30]   three views over live clicks; needs Java 17 or newer, nothing else"
	@echo "make demo-kafka               a year of flights through a real Apache Kafka"
	@echo "make demo-stores              Kinesis, Kafka and PostgreSQL joined, out to Delta and Iceberg; needs npm, too"
	@echo "make venv                     only the virtual environment"
	@echo "make check                    ruff, mypy, import-linter, and the tests of single rooms (a minute)"
	@echo "make test                     the whole suite; make test-night the longer tiers"
	@echo "make test-oracle [N=200]      so many random programs against PostgreSQL, from a seed of their own"
	@echo "make corpus                   some 1,790 statements in three ways beside a real PostgreSQL"
	@echo "make bench [PARTS=\"...\"]      measurements, written to docs/performance*.md"
	@echo "make clean                    removes what the demos, tests and tools leave behind"

venv: $(INSTALLED)

$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed: make venv PYTHON=/path/to/python3.11" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: venv
	@$(BIN)/python -m mvserver.demo

demo-kafka: venv
	@$(BIN)/python -m mvserver.demo.flights

demo-stores: venv
	@$(BIN)/python -W ignore::RuntimeWarning -m tests.stores_demo

# Beside each other: the tests wait at times.
check: venv
	@$(MAKE) --no-print-directory --jobs=3 --output-sync=target lint fast

# Two of them at once with --jobs=2.
lint: types style

types: venv
	$(BIN)/mypy

style: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

# The tests of single rooms. Each module's tests run in one process: what they share is made once.
ROOMS := $(addprefix tests/,bench catalog compiler databricks demo dialect docs file http iceberg kafka pgcatalog routing schema_registry session snowflake sql wire) $(wildcard tests/test_*.py)
fast: venv
	$(BIN)/python -m pytest -q -n auto --dist loadfile -m "not (spark or kafka or kinesis or postgres or registry or snowflake or large or slow or night)" $(ROOMS)

# The modules with tests that need services; the others need not even be read for these.
WITH_SERVICES = $(shell grep -rlE 'mark\.(spark|kafka|kinesis|registry)\b' tests --include='test_*.py' | sort)
# Two processes, each with a Spark and brokers of its own: one computes while the other waits for its services.
test: venv
	$(BIN)/python -m pytest -q -n auto --dist loadfile --no-loadscope-reorder -m "not spark and not kafka and not kinesis and not registry and not night"
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "(spark or kafka or kinesis or registry) and not night" $(WITH_SERVICES)

corpus: venv
	$(BIN)/python -m tests.corpus.run

N ?= 200
test-oracle: venv
	MV_ORACLE_PROGRAMS=$(N) $(BIN)/python -m pytest -s tests/oracle

test-night: venv
	$(BIN)/python -m pytest -m night

format: venv
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: venv
	$(BIN)/python -m tests.bench.run $(PARTS)

clean:
	rm -rf demo-data build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	find mvserver spark_sinks catalog tests -name __pycache__ -type d -prune -exec rm -rf {} +
