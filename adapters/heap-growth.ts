/**
 * How far this process's heap may grow before V8 collects all of it.
 *
 * The bytes of requests are no part of V8's heap, but by its own rule it collects all of the heap
 * for each 64 MB of them; counted with the heap they go with the next collection that is due. That
 * one is due when both have grown to three times of what is live, or to 512 MiB where the machine
 * has so much: of a server that holds 40 MB, puts of 64 KiB made one of each 90 MB they brought.
 *
 * Source: decisions 0116, 0163.
 */
import { totalmem } from "node:os"
import { constants, PerformanceObserver } from "node:perf_hooks"
import { getHeapStatistics, setFlagsFromString } from "node:v8"

const mib = 1024 * 1024

/** What may be in memory before all of it is looked at, in bytes, and of the machine's memory. */
const grown_bytes_max = 512 * mib
const memory_share = 1 / 16

/** After idle time V8 would allow a tenth more than what is live, which one get of 16 MiB is. */
const percent_min = 200

/**
 * V8 takes the share that was set before a collection, and what is live by then may be several
 * times as much as it was at the one before: so the least that is counted as live, in bytes.
 */
const live_bytes_min = 64 * mib

/** By how much what is live may grow, in percent of it, on a machine of so many bytes of memory. */
export const growthPercent = (live_bytes: number, memory_bytes: number): number => {
  const grown_bytes = Math.min(grown_bytes_max, memory_bytes * memory_share)
  const percent = Math.floor((100 * grown_bytes) / Math.max(live_bytes, live_bytes_min)) - 100
  return Math.max(percent, percent_min)
}

/** Bytes of memory that this process may use: the machine's, or its control group's. */
const memoryBytes = () => Math.min(totalmem(), process.constrainedMemory() || Infinity)

/** What is here, in V8's heap and beside it: behind a collection of all of it, what is live. */
const heldBytes = () => {
  const { used_heap_size, external_memory } = getHeapStatistics()
  return used_heap_size + external_memory
}

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null

/** Whether an entry tells of a collection of all of the heap. */
const isOfAll = (entry: object) =>
  "detail" in entry &&
  isObject(entry.detail) &&
  "kind" in entry.detail &&
  entry.detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR

/** Says it to V8, once and behind each collection of all of the heap, for this process's life. */
export const growHeap = () => {
  const memory_bytes = memoryBytes()
  const say = () => {
    setFlagsFromString(`--heap-growing-percent=${growthPercent(heldBytes(), memory_bytes)}`)
  }
  setFlagsFromString("--external-memory-accounted-in-global-limit")
  say()
  const observer = new PerformanceObserver((seen) => {
    if (seen.getEntries().some(isOfAll)) say()
  })
  observer.observe({ entryTypes: ["gc"] })
}
