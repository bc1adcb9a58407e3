#!/bin/sh
# Runs its arguments with a server's limits: no core dump, because it would contain every secret,
# and the memory settings of decisions 0198 and 0202. Variables that are already set stay as they
# are.
ulimit -c 0
export MALLOC_ARENA_MAX="${MALLOC_ARENA_MAX:-2}"
export MALLOC_MMAP_THRESHOLD_="${MALLOC_MMAP_THRESHOLD_:-131072}"
# The last of two options wins, so the operator's own come last.
export NODE_OPTIONS="--max-semi-space-size=8 ${NODE_OPTIONS:-}"
exec "$@"
