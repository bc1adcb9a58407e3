#!/bin/sh
# Becomes its arguments, with the limits of a server: no core dump, which would hold every secret,
# and the memory that decision 0198 gives it. What is set already stays.
ulimit -c 0
export MALLOC_ARENA_MAX="${MALLOC_ARENA_MAX:-2}"
export MALLOC_MMAP_THRESHOLD_="${MALLOC_MMAP_THRESHOLD_:-131072}"
# Node takes the last of two: an operator's own comes behind.
export NODE_OPTIONS="--max-semi-space-size=16 ${NODE_OPTIONS:-}"
exec "$@"
