/**
 * Runs a function once per process, in the first thread that needs it. The formats that libvips may
 * read are such a setting: while a thread blocks all and then allows two, no other thread can
 * decode. Source: decision 0102.
 */
import { getEnvironmentData, setEnvironmentData } from "node:worker_threads"

const key = "almanac/plant-image"
const [untouched, begun, done] = [0, 1, 2]
/** The work takes microseconds. After this time, the thread that began it must have died. */
const wait_ms_max = 1000

/** Shared with all threads that are started after the first call. */
export const sharedState = (): Int32Array => {
  const found = getEnvironmentData(key)
  if (found instanceof SharedArrayBuffer) return new Int32Array(found)
  const made = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)
  setEnvironmentData(key, made)
  return new Int32Array(made)
}

/** Runs `work`, or waits until another thread has finished it. */
export const onceInProcess = (work: () => void) => {
  const state = sharedState()
  if (Atomics.compareExchange(state, 0, untouched, begun) !== untouched) {
    if (Atomics.wait(state, 0, begun, wait_ms_max) !== "timed-out") return
  }
  try {
    work()
  } finally {
    Atomics.store(state, 0, done)
    Atomics.notify(state, 0)
  }
}
