/**
 * The high-water mark: the last commit that this process knows to be acknowledged, in a file
 * outside JetStream's store. A log that ends before it has lost commits.
 *
 * It is written after the acknowledgement, never before. It lags by at most `write_ms` if the
 * process is killed, because data in the page cache survives the process, and by at most `sync_ms`
 * after a power cut. That is enough: the log itself syncs each commit before it is acknowledged, so
 * the mark need not cover the last second; disk damage affects older commits too.
 */
import { type FileHandle, open, readFile } from "node:fs/promises"
import { Effect, Schema } from "effect"
import { syncFolder } from "#files"
import { causeText } from "#schemas/cause-text.ts"
import { sha256 } from "../commits/codec.ts"

const fields = {
  /** Of the last commit known to be acknowledged. */
  position: Schema.Int,
  /** SHA-256 (hex) of that commit as stored. */
  hash: Schema.String,
  /** The stream that holds it, and the stream's creation time (RFC 3339). */
  stream: Schema.String,
  stream_created: Schema.String,
  /** The log's last restore or accepted loss when this process last started on it. */
  restore_id: Schema.NullOr(Schema.String),
} as const

export const Mark = Schema.Struct(fields)
export type Mark = typeof Mark.Type

/** The mark's file cannot be created, read or written; the message contains a remedy. */
export class MarkUnusable extends Schema.TaggedError<MarkUnusable>()("MarkUnusable", {
  message: Schema.String,
}) {}

/** The mark's file name in the data folder. */
export const mark_file = "log-mark"

/** Maximum lag of the mark in milliseconds when the process is killed. */
const write_ms = 20

/** Maximum lag of the mark on disk in milliseconds. */
const sync_ms = 1_000

/**
 * Bytes of one of the file's two slots. They are written alternately, so that one is complete if
 * the other is torn; a disk sector is at least as large.
 */
const slot_bytes = 512
const slots = 2

const file_mode = 0o600

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Mark))

/** `<checksum> <JSON>`, padded with spaces up to a line feed at the end of the slot. */
const encodeSlot = (mark: Mark) => {
  const text = JSON.stringify(mark)
  return Buffer.from(`${sha256(text)} ${text}`.padEnd(slot_bytes - 1).concat("\n"))
}

const hash_chars = 64

const decodeSlot = (bytes: Buffer): Mark | undefined => {
  const text = bytes.toString("utf8").trimEnd()
  const json = text.slice(hash_chars + 1)
  if (text.slice(0, hash_chars) !== sha256(json)) return undefined
  try {
    return decode(json)
  } catch {
    return undefined
  }
}

const readSlots = (bytes: Buffer) =>
  Array.from({ length: slots }, (_, i) =>
    decodeSlot(bytes.subarray(i * slot_bytes, (i + 1) * slot_bytes)),
  )

/** A later restore takes precedence over a larger position, because it rolls positions back. */
const newest = (marks: ReadonlyArray<Mark | undefined>, first: number) => {
  const found = marks.flatMap((mark) => (mark === undefined ? [] : [mark]))
  const [one, other] = found
  if (one === undefined || other === undefined) return one
  if (one.restore_id !== other.restore_id) return marks[first]
  return one.position >= other.position ? one : other
}

/** Offset of the byte after both slots that holds the index of the last written one. */
const slot_index_at = slots * slot_bytes

const slotIndexIn = (bytes: Buffer) => (bytes[slot_index_at] === 1 ? 1 : 0)

/** Decodes a file's mark; undefined if the file is empty. Throws if no slot is valid. */
const markIn = (bytes: Buffer): Mark | undefined => {
  if (bytes.length === 0) return undefined
  const mark = newest(readSlots(bytes), slotIndexIn(bytes))
  if (mark === undefined) throw new Error("its content is damaged")
  return mark
}

const unusable = (path: string, cause: unknown) =>
  new MarkUnusable({
    message:
      `The log's high-water mark ${path} cannot be used: ${causeText(cause)}. Without it the log ` +
      "is compared with the read models only. Delete the file to start a new one.",
  })

const isAbsent = (cause: unknown) =>
  cause instanceof Error && "code" in cause && cause.code === "ENOENT"

/** Reads the mark without changing it; undefined if there is none. Fails with MarkUnusable. */
export const readMark = (path: string) =>
  Effect.tryPromise({
    try: () =>
      readFile(path).then(markIn, (cause) => {
        if (isAbsent(cause)) return undefined
        throw cause
      }),
    catch: (cause) => unusable(path, cause),
  })

/** The mark of a running process. */
export interface MarkWriter {
  /** The mark when the file was opened. */
  readonly found: Mark | undefined
  /** The last commit known to be in the log: this process's own, or the mark's. */
  readonly known: () => Mark | undefined
  /** Sets the stream of later marks. */
  readonly identify: (identity: Identity) => void
  /** Advances the mark to a later commit, asynchronously. Ignores an earlier one. */
  readonly advance: (position: number, bytes: Uint8Array) => void
  /** Sets the mark to this commit, or to a later one of this process, unconditionally. */
  readonly settle: (last: MarkPosition) => Effect.Effect<void, MarkUnusable>
}

/** The stream of a mark. */
export type Identity = Pick<Mark, "stream" | "stream_created">

/** The new value of a mark. */
export type MarkPosition = Omit<Mark, keyof Identity>

const no_identity: Identity = { stream: "", stream_created: "" }

/**
 * Opens or creates the mark and maintains it until the scope closes, when its exact value is
 * written. `report` receives the first of consecutive write failures.
 */
export const openMark = Effect.fnUntraced(function* (
  path: string,
  report: (problem: string) => void,
) {
  const file = yield* Effect.acquireRelease(
    Effect.tryPromise({ try: () => openFile(path), catch: (cause) => unusable(path, cause) }),
    ({ handle }) => Effect.promise(() => handle.close().catch(() => undefined)),
  )
  const writer = newWriter(file, (cause) => report(unusable(path, cause).message))
  yield* Effect.addFinalizer(() => Effect.promise(writer.end))
  const { known, identify, advance, settle } = writer
  return {
    found: file.found,
    known,
    identify,
    advance,
    settle: (last) =>
      Effect.tryPromise({ try: () => settle(last), catch: (cause) => unusable(path, cause) }),
  } satisfies MarkWriter
})

interface Opened {
  readonly handle: FileHandle
  /** The slot that was written last; the next mark goes to the other. */
  readonly slot: number
  readonly found: Mark | undefined
}

const openFile = async (path: string): Promise<Opened> => {
  const created = await open(path, "wx+", file_mode).catch((cause) => {
    if (cause instanceof Error && "code" in cause && cause.code === "EEXIST") return undefined
    throw cause
  })
  const handle = created ?? (await open(path, "r+"))
  try {
    if (created !== undefined) {
      await syncFolder(path.slice(0, path.lastIndexOf("/")) || "/")
      return { handle, slot: 0, found: undefined }
    }
    const bytes = await handle.readFile()
    return { handle, slot: slotIndexIn(bytes), found: markIn(bytes) }
  } catch (cause) {
    await handle.close()
    throw cause
  }
}

interface Latest {
  readonly position: number
  readonly bytes: Uint8Array
}

/** Writes marks to the file's slots, one at a time. */
const slotWriter = ({ handle, slot: last_slot }: Opened, failed: (cause: unknown) => void) => {
  let slot = last_slot
  let last: Promise<void> = Promise.resolve()
  let has_failed = false
  const put = async (mark: Mark) => {
    slot = (slot + 1) % slots
    await handle.write(encodeSlot(mark), 0, slot_bytes, slot * slot_bytes)
    await handle.write(Buffer.of(slot), 0, 1, slot_index_at)
  }
  /** Runs after all earlier writes; reports only the first of consecutive failures. */
  const enqueue = (work: () => Promise<void>) => {
    last = last.then(work).then(
      () => {
        has_failed = false
      },
      (cause) => {
        if (!has_failed) failed(cause)
        has_failed = true
      },
    )
    return last
  }
  return {
    put: (mark: Mark) => enqueue(() => put(mark)),
    sync: () => enqueue(() => handle.datasync()),
    /** Rejects if the write fails. */
    putNow: async (mark: Mark) => {
      await last
      await put(mark)
      await handle.datasync()
    },
  }
}

/** Writes the newest mark at most every `write_ms`, and syncs it at most every `sync_ms`. */
const newWriter = (opened: Opened, failed: (cause: unknown) => void) => {
  const { found } = opened
  const file = slotWriter(opened, failed)
  let identity: Identity = found ?? no_identity
  let settled = found
  let position = found?.position ?? 0
  // The last commit that this process itself appended to the current log.
  let acknowledged: Latest | undefined
  let restore_id = found?.restore_id ?? null
  let latest: Latest | undefined
  let write_timer: NodeJS.Timeout | undefined
  let sync_timer: NodeJS.Timeout | undefined

  const markOf = ({ position, bytes }: Latest): Mark => {
    const { stream, stream_created } = identity
    return { position, hash: sha256(bytes), stream, stream_created, restore_id }
  }
  const write = () => {
    write_timer = undefined
    const next = latest
    latest = undefined
    if (next === undefined) return
    sync_timer ??= setTimeout(sync, sync_ms).unref()
    void file.put(markOf(next))
  }
  const sync = () => {
    sync_timer = undefined
    void file.sync()
  }
  return {
    known: () => (acknowledged === undefined ? settled : markOf(acknowledged)),
    identify: (of: Identity) => {
      identity = of
    },
    advance: (to: number, bytes: Uint8Array) => {
      if (to > (acknowledged?.position ?? 0)) acknowledged = { position: to, bytes }
      if (to <= position) return
      position = to
      latest = acknowledged
      write_timer ??= setTimeout(write, write_ms).unref()
    },
    settle: (last: MarkPosition) => {
      latest = undefined
      restore_id = last.restore_id
      // This process may have appended since the caller read the log.
      const is_later = acknowledged !== undefined && acknowledged.position > last.position
      const { stream, stream_created } = identity
      const now =
        is_later && acknowledged ? markOf(acknowledged) : { ...last, stream, stream_created }
      position = now.position
      settled = now
      return file.putNow(now)
    },
    end: async () => {
      clearTimeout(write_timer)
      write()
      clearTimeout(sync_timer)
      await file.sync()
    },
  }
}
