/**
 * Buffers responses in memory while they are small, and in a private file when they grow.
 *
 * The file is unlinked as soon as it is open, so that only this process can read it and no file is
 * left behind, even if the process is killed.
 */
import { randomUUID } from "node:crypto"
import { constants } from "node:fs"
import { type FileHandle, open, unlink } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Layer, Stream } from "effect"
import {
  BufferFailed,
  type ResponseBuffer,
  ResponseBuffers,
} from "#actors/carrier-search/response-buffer.ts"

export interface AnswerBufferOptions {
  /** Folder of the files, which must exist. */
  readonly dir: string
  /** Bytes of one response to keep in memory. */
  readonly answer_bytes_max?: number
  /** Bytes of all responses together to keep in memory. */
  readonly memory_bytes_max?: number
}

/** About 40,000 carriers, so that most responses use no disk. */
const default_answer_bytes_max = 4 * 2 ** 20
/** Regardless of the number of concurrent searches. */
const default_memory_bytes_max = 32 * 2 ** 20
/** Bytes per write. */
const write_bytes = 256 * 1024
/** Smaller pieces are copied together, because each piece has a fixed cost. */
const small_bytes = 16 * 1024
/** Minimum and maximum size of the block that they are copied into; most responses are small. */
const block_bytes_min = 4 * 1024
const block_bytes_max = 64 * 1024
const read_bytes = 256 * 1024
/** Owner only: a search's results are public, but who requested them is not. */
const mode = 0o600

const failed = (cause: unknown) => new BufferFailed({ detail: String(cause) })

const attempt = <A>(run: () => Promise<A>) => Effect.tryPromise({ try: run, catch: failed })

/** Creates a new file, never opening an existing one, and unlinks it before anything is written. */
const openFile = async (dir: string) => {
  const path = join(dir, `almanac-answer-${randomUUID()}`)
  const { O_RDWR, O_CREAT, O_EXCL, O_NOFOLLOW } = constants
  const file = await open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode)
  await unlink(path)
  return file
}

/** Writes all bytes, because the system may accept fewer per call. */
const writeAll = async (file: FileHandle, bytes: Uint8Array, position: number) => {
  let done = 0
  while (done < bytes.length) {
    done += (await file.write(bytes, done, bytes.length - done, position + done)).bytesWritten
  }
}

/** Reads one piece of a file; fails if the file ends before it. */
const readPiece = async (file: FileHandle, position: number, length: number) => {
  const { bytesRead, buffer } = await file.read(new Uint8Array(length), 0, length, position)
  if (bytesRead === 0) throw new Error(`the file ends at ${position}`)
  return buffer.subarray(0, bytesRead)
}

const filePieces = (file: FileHandle, length: number) =>
  Stream.unfold(0, (position) => {
    if (position >= length) return Effect.succeed(undefined)
    const size = Math.min(read_bytes, length - position)
    return Effect.map(
      attempt(() => readPiece(file, position, size)),
      (bytes) => [bytes, position + bytes.length] as const,
    )
  })

/** The first `length` bytes of these parts. */
const firstOf = (parts: ReadonlyArray<Uint8Array>, length: number) => {
  let remaining = length
  return parts.flatMap((part) => {
    const piece = part.subarray(0, remaining)
    remaining -= piece.length
    return piece.length === 0 ? [] : [piece]
  })
}

/** Collects bytes in order, in pieces of a sensible size. */
const pieceBuffer = () => {
  let parts: Array<Uint8Array> = []
  let block = new Uint8Array(0)
  let [used, length] = [0, 0]
  const seal = () => {
    if (used > 0) parts.push(block.subarray(0, used))
    block = block.subarray(used)
    used = 0
  }
  return {
    length: () => length,
    push: (bytes: Uint8Array) => {
      length += bytes.length
      const is_small = bytes.length < small_bytes
      if (!is_small || bytes.length > block.length - used) seal()
      if (!is_small) return void parts.push(bytes)
      if (bytes.length > block.length) {
        block = new Uint8Array(Math.min(block_bytes_max, Math.max(block_bytes_min, length * 2)))
      }
      block.set(bytes, used)
      used += bytes.length
    },
    parts: (): ReadonlyArray<Uint8Array> => {
      seal()
      return parts
    },
    clear: () => {
      parts = []
      length = 0
      used = 0
    },
  }
}

/** Memory used by all buffers of a process. */
interface MemoryUsage {
  bytes: number
}

const openBuffer = Effect.fnUntraced(function* (
  options: Required<AnswerBufferOptions>,
  usage: MemoryUsage,
) {
  const { dir, answer_bytes_max, memory_bytes_max } = options
  const memory = pieceBuffer()
  let written_bytes = 0
  let file: FileHandle | undefined
  yield* Effect.addFinalizer(() =>
    Effect.promise(async () => {
      usage.bytes -= memory.length()
      await file?.close()
    }),
  )

  const flush = async () => {
    file ??= await openFile(dir)
    const bytes = Buffer.concat(memory.parts())
    await writeAll(file, bytes, written_bytes)
    written_bytes += bytes.length
    usage.bytes -= bytes.length
    memory.clear()
  }
  const is_full = () =>
    file === undefined
      ? memory.length() > answer_bytes_max || usage.bytes > memory_bytes_max
      : memory.length() >= write_bytes

  const buffered: ResponseBuffer = {
    add: (bytes) =>
      Effect.suspend(() => {
        memory.push(bytes)
        usage.bytes += bytes.length
        // Uninterruptible, because a partial write would lose bytes.
        return is_full() ? Effect.uninterruptible(attempt(flush)) : Effect.void
      }),
    length: () => written_bytes + memory.length(),
    read: (length) =>
      Stream.unwrap(
        Effect.gen(function* () {
          if (file === undefined) return Stream.fromArray(firstOf(memory.parts(), length))
          if (memory.length() > 0) yield* Effect.uninterruptible(attempt(flush))
          return filePieces(file, length)
        }),
      ),
  }
  return buffered
})

/** Response buffers of this process. The options' defaults suit a server. */
export const answerBufferFile = (options: AnswerBufferOptions) => {
  const usage: MemoryUsage = { bytes: 0 }
  const all_options = {
    answer_bytes_max: default_answer_bytes_max,
    memory_bytes_max: default_memory_bytes_max,
    ...options,
  }
  return Layer.succeed(ResponseBuffers, { open: openBuffer(all_options, usage) })
}
