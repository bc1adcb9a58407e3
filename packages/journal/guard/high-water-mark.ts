/**
 * The high-water mark: the last commit that this process knows to be acknowledged, in a file
 * outside JetStream's store. A log that ends before it has lost commits.
 *
 * It is written behind the answer, never before it. A process that is killed leaves it at most
 * `write_ms` behind, since what was handed to the kernel outlives the process. A power cut leaves
 * it at most `sync_ms` behind. That is enough: the log itself syncs each commit before the answer,
 * so the mark need not prove the last second; damage at rest takes older commits with it.
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
  /** The stream that holds it, and when that was made: RFC 3339. */
  stream: Schema.String,
  stream_created: Schema.String,
  /** The last restore or accepted loss that the log had when this process last started on it. */
  restore_id: Schema.NullOr(Schema.String),
} as const

export const Mark = Schema.Struct(fields)
export type Mark = typeof Mark.Type

/** The mark's file cannot be made, read or written; the message says what to do. */
export class MarkUnusable extends Schema.TaggedError<MarkUnusable>()("MarkUnusable", {
  message: Schema.String,
}) {}

/** The mark's name in the data folder. */
export const mark_file = "log-mark"

/** Milliseconds that the mark may be behind in a process that is killed. */
const write_ms = 20

/** Milliseconds that it may be behind on disk. */
const sync_ms = 1_000

/**
 * Bytes of one of the file's two slots. They are written by turns, so that one is whole whenever
 * the other is torn; a sector of a disk is at least as large.
 */
const slot_bytes = 512
const slots = 2

const file_mode = 0o600

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Mark))

/** `<checksum> <JSON>`, filled with spaces up to a line break at the slot's end. */
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

/** A later restore counts more than a larger position: it takes positions back. */
const newest = (marks: ReadonlyArray<Mark | undefined>, first: number) => {
  const found = marks.flatMap((mark) => (mark === undefined ? [] : [mark]))
  const [one, other] = found
  if (one === undefined || other === undefined) return one
  if (one.restore_id !== other.restore_id) return marks[first]
  return one.position >= other.position ? one : other
}

/** Which slot was written last is the file's last byte, beyond both. */
const turn_at = slots * slot_bytes

const turnIn = (bytes: Buffer) => (bytes[turn_at] === 1 ? 1 : 0)

/** The mark in a file's bytes; undefined in an empty file. Throws where no slot is whole. */
const markIn = (bytes: Buffer): Mark | undefined => {
  if (bytes.length === 0) return undefined
  const mark = newest(readSlots(bytes), turnIn(bytes))
  if (mark === undefined) throw new Error("its content is damaged")
  return mark
}

const unusable = (path: string, cause: unknown) =>
  new MarkUnusable({
    message:
      `The log's high-water mark ${path} cannot be used: ${causeText(cause)}. Without it the log ` +
      "is compared with the read models alone. Remove the file to begin a new one.",
  })

const isAbsent = (cause: unknown) =>
  cause instanceof Error && "code" in cause && cause.code === "ENOENT"

/** Reads the mark without changing it; undefined where there is none. MarkUnusable. */
export const readMark = (path: string) =>
  Effect.tryPromise({
    try: () =>
      readFile(path).then(markIn, (cause) => {
        if (isAbsent(cause)) return undefined
        throw cause
      }),
    catch: (cause) => unusable(path, cause),
  })

/** A mark that its process keeps. */
export interface KeptMark {
  /** As it was when it was opened. */
  readonly found: Mark | undefined
  /** The last commit that this process knows to be in the log: its own, or the mark's. */
  readonly known: () => Mark | undefined
  /** Names the stream that later marks are of. */
  readonly identify: (identity: Identity) => void
  /** Moves it to a later commit, soon. An earlier one changes nothing. */
  readonly advance: (position: number, bytes: Uint8Array) => void
  /** Sets it to this commit, or a later one of this process, whatever it was before. */
  readonly settle: (last: Settled) => Effect.Effect<void, MarkUnusable>
}

/** The stream that a mark is of. */
export type Identity = Pick<Mark, "stream" | "stream_created">

/** What a mark is set to. */
export type Settled = Omit<Mark, keyof Identity>

const no_identity: Identity = { stream: "", stream_created: "" }

/**
 * Opens the mark, made where there is none, and keeps it until the scope closes; then it is exact.
 * `report` hears of a write that failed, once for each failure in a row.
 */
export const openMark = Effect.fnUntraced(function* (
  path: string,
  report: (problem: string) => void,
) {
  const file = yield* Effect.acquireRelease(
    Effect.tryPromise({ try: () => openFile(path), catch: (cause) => unusable(path, cause) }),
    ({ handle }) => Effect.promise(() => handle.close().catch(() => undefined)),
  )
  const kept = keeper(file, (cause) => report(unusable(path, cause).message))
  yield* Effect.addFinalizer(() => Effect.promise(kept.end))
  const { known, identify, advance, settle } = kept
  return {
    found: file.found,
    known,
    identify,
    advance,
    settle: (last) =>
      Effect.tryPromise({ try: () => settle(last), catch: (cause) => unusable(path, cause) }),
  } satisfies KeptMark
})

interface Opened {
  readonly handle: FileHandle
  /** The slot that was written last: the next mark goes to the other. */
  readonly turn: number
  readonly found: Mark | undefined
}

const openFile = async (path: string): Promise<Opened> => {
  const made = await open(path, "wx+", file_mode).catch((cause) => {
    if (cause instanceof Error && "code" in cause && cause.code === "EEXIST") return undefined
    throw cause
  })
  const handle = made ?? (await open(path, "r+"))
  try {
    if (made !== undefined) {
      await syncFolder(path.slice(0, path.lastIndexOf("/")) || "/")
      return { handle, turn: 0, found: undefined }
    }
    const bytes = await handle.readFile()
    return { handle, turn: turnIn(bytes), found: markIn(bytes) }
  } catch (cause) {
    await handle.close()
    throw cause
  }
}

interface Latest {
  readonly position: number
  readonly bytes: Uint8Array
}

/** Writes marks into the file's slots, one after another. */
const slotWriter = ({ handle, turn }: Opened, failed: (cause: unknown) => void) => {
  let slot = turn
  let last: Promise<void> = Promise.resolve()
  let has_failed = false
  const put = async (mark: Mark) => {
    slot = (slot + 1) % slots
    await handle.write(encodeSlot(mark), 0, slot_bytes, slot * slot_bytes)
    await handle.write(Buffer.of(slot), 0, 1, turn_at)
  }
  /** Does it after what was begun before; a failure is reported, once in a row. */
  const inTurn = (work: () => Promise<void>) => {
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
    put: (mark: Mark) => inTurn(() => put(mark)),
    sync: () => inTurn(() => handle.datasync()),
    /** Rejects where it cannot be written. */
    putNow: async (mark: Mark) => {
      await last
      await put(mark)
      await handle.datasync()
    },
  }
}

/** Writes the newest mark at most every `write_ms`, and syncs it at most every `sync_ms`. */
const keeper = (opened: Opened, failed: (cause: unknown) => void) => {
  const { found } = opened
  const file = slotWriter(opened, failed)
  let identity: Identity = found ?? no_identity
  let settled = found
  let position = found?.position ?? 0
  // Of this process: what it knows is of the log as it is now.
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
    settle: (last: Settled) => {
      latest = undefined
      restore_id = last.restore_id
      // What this process has appended since the caller looked is later.
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
