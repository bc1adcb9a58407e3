/**
 * The main thread's end of one put: gathers a stream's bytes into frames and sends them to the
 * worker with a bound on how many are under way.
 */

import { frame_bytes, frames_in_flight_max } from "./blob-files-protocol.ts"
import type { Answer, Thread } from "./blob-files-thread.ts"
import type { PutAnswer, PutOrder } from "./blob-files-uploads.ts"

/** The first allocation for a blob that comes in small pieces. */
const frame_bytes_first = 4096

const done: Answer<void> = { ok: true, value: undefined }

/** Bytes up to one frame, copied: a producer may use its own array again, or need it still. */
const makeFrame = () => {
  let bytes = new Uint8Array(0)
  let used = 0
  return {
    /** Takes what fits and answers how much that was. */
    take: (part: Uint8Array) => {
      const count = Math.min(part.length, frame_bytes - used)
      if (used + count > bytes.length) {
        const size = Math.max(used + count, 2 * bytes.length, frame_bytes_first)
        const larger = new Uint8Array(Math.min(size, frame_bytes))
        larger.set(bytes.subarray(0, used))
        bytes = larger
      }
      bytes.set(part.subarray(0, count), used)
      used += count
      return count
    },
    isFull: () => used === frame_bytes,
    isEmpty: () => used === 0,
    /** Hands the bytes over and begins anew. */
    empty: () => {
      const full = bytes.subarray(0, used)
      bytes = new Uint8Array(0)
      used = 0
      return full
    },
  }
}

/**
 * One put: `write` each part, then `finish`, and `end` in any case. The answers are promises that
 * never reject; a fault of an earlier frame is answered by the next call that waits for it.
 */
export const makeUpload = (thread: Thread, key: number, order: PutOrder) => {
  const frame = makeFrame()
  const under_way: Array<Promise<Answer<void>>> = []
  let begun = false

  const oldest = async () => (await under_way.shift()) ?? done
  const send = async (): Promise<Answer<void>> => {
    if (!begun) {
      begun = true
      under_way.push(thread.call("putBegin", [key, order]))
    }
    const bytes = frame.empty()
    while (under_way.length >= frames_in_flight_max) {
      const answer = await oldest()
      if (!answer.ok) return answer
    }
    under_way.push(thread.call("putAppend", [key, bytes], [bytes.buffer]))
    return done
  }
  const write = async (part: Uint8Array): Promise<Answer<void>> => {
    for (let taken = 0; taken < part.length; ) {
      taken += frame.take(part.subarray(taken))
      if (!frame.isFull()) continue
      const answer = await send()
      if (!answer.ok) return answer
    }
    return done
  }
  const finish = async (at: bigint): Promise<Answer<PutAnswer>> => {
    if (!begun) {
      const bytes = frame.empty()
      return thread.call("putWhole", [order, bytes, at], [bytes.buffer])
    }
    if (!frame.isEmpty()) await send()
    while (under_way.length > 0) {
      const answer = await oldest()
      if (!answer.ok) return answer
    }
    return thread.call("putFinish", [key, at])
  }
  const end = async () => {
    if (begun) await thread.call("putEnd", [key])
  }
  return { write, finish, end }
}
