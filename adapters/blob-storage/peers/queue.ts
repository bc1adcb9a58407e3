/**
 * Batches small copies for one node: copies sent in one turn of the event loop, or while the node
 * is busy, share a request. A single copy is not delayed, and the busier the node is, the more
 * copies share a frame, a commit and a response.
 *
 * Decision 0152.
 */
import type { ReceiveResult } from "#actors/blob-storage/ports/node-engine.ts"
import type { Connection } from "#adapters/blob-storage/peer/call.ts"
import { isPeerFailure } from "#cluster"
import {
  batch_bytes_max,
  batch_copies_max,
  batch_json_bytes_max,
  decodeOutcomes,
  encodeBatch,
  jsonBytesMax,
  type SentCopy,
} from "./batch.ts"
import { copyBytesIn } from "./copy.ts"
import { operations } from "./message.ts"

/**
 * Maximum number of concurrent requests. Copies of one turn have already waited for a sync of this
 * disk; with a single request, half of them would also wait for the round trip of the others.
 */
const requests_max = 4

/**
 * How long copies wait for a response before they are sent anyway, in milliseconds: two slow syncs.
 */
const wait_ms_max = 20

interface QueuedCopy extends SentCopy {
  readonly deadline_ms: number
  readonly resolve: (received: ReceiveResult) => void
  readonly reject: (cause: unknown) => void
}

/** Takes the copies for the next request. */
const takeBatch = (queued: Array<QueuedCopy>, record_bytes: number) => {
  let [count, bytes, json_bytes] = [0, 0, 0]
  for (const { order, size } of queued) {
    bytes += record_bytes + size
    json_bytes += jsonBytesMax(order)
    const is_full = bytes > batch_bytes_max || json_bytes > batch_json_bytes_max
    // A single copy is always within the limits.
    if (count === batch_copies_max || (is_full && count > 0)) break
    count += 1
  }
  return queued.splice(0, count)
}

/**
 * The queue of one connection. `send` resolves and rejects like that of `Peers`, for each copy
 * separately.
 */
export const copyQueue = ({ version, call }: Connection, wait_ms = wait_ms_max) => {
  const queued: Array<QueuedCopy> = []
  let active_requests = 0
  let is_flushing = false
  let timer: ReturnType<typeof setTimeout> | undefined

  const settle = (
    copies: ReadonlyArray<QueuedCopy>,
    outcomes: ReturnType<typeof decodeOutcomes>,
  ) => {
    for (const [n, { resolve, reject }] of copies.entries()) {
      const outcome = outcomes[n]
      if (isPeerFailure(outcome)) reject(outcome)
      else if (outcome !== undefined) resolve(outcome)
    }
  }
  const sendNext = async () => {
    const copies = takeBatch(queued, copyBytesIn(version))
    const deadline_ms = Math.max(...copies.map((copy) => copy.deadline_ms))
    active_requests += 1
    try {
      const { json, body } = encodeBatch(copies, version)
      const response = await call(operations.replicate_many, json, body, deadline_ms)
      settle(copies, decodeOutcomes(response, copies.length, version))
    } catch (cause) {
      for (const { reject } of copies) reject(cause)
    } finally {
      active_requests -= 1
      flush()
    }
  }
  const flushAll = () => {
    clearTimeout(timer)
    timer = undefined
    while (queued.length > 0) void sendNext()
  }
  const flush = () => {
    if (queued.length === 0) return
    if (active_requests < requests_max) flushAll()
    else timer ??= setTimeout(flushAll, wait_ms)
  }
  const flushSoon = () => {
    if (is_flushing) return
    is_flushing = true
    // After all promise callbacks of this turn, because a batch from the disk releases many copies
    // one by one.
    process.nextTick(() => {
      is_flushing = false
      flush()
    })
  }
  return {
    send: ({ order, bytes, size }: SentCopy, deadline_ms: number) =>
      new Promise<ReceiveResult>((resolve, reject) => {
        queued.push({ order, bytes, size, deadline_ms, resolve, reject })
        flushSoon()
      }),
  }
}
