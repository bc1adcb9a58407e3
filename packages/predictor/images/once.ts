/**
 * What holds for all of a process's threads, and is done by the first that comes to it. Which
 * formats libvips reads is such a thing: no thread may begin to say so while another decodes, since
 * between forbidding all and allowing two nothing can be decoded. Source: decision 0102.
 */
import { getEnvironmentData, setEnvironmentData } from "node:worker_threads"

const key = "almanac/plant-image"
const [untouched, begun, done] = [0, 1, 2]
/** It takes microseconds; a thread that was ended in the middle of it is not waited for. */
const wait_ms_max = 1000

/** Shared with every thread that is started after this was first asked for. */
export const sharedState = (): Int32Array => {
  const found = getEnvironmentData(key)
  if (found instanceof SharedArrayBuffer) return new Int32Array(found)
  const made = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)
  setEnvironmentData(key, made)
  return new Int32Array(made)
}

/** Does it, or waits until another thread has. */
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
