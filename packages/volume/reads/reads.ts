/**
 * Reads of a volume. A small blob is one read of its record; a large one is read from its extents
 * in windows, the next while the previous one is sent. Every byte is verified before it is
 * returned.
 */
import { Blake3Hasher } from "@napi-rs/blake-hash"
import type { BlobRange, BlobReading } from "#actors/blob-storage/ports/engine.ts"
import { faultError, faultOf } from "#actors/blob-storage/ports/fault.ts"
import type { CopyReading } from "#actors/blob-storage/ports/node-engine.ts"
import type { BlobId, BlobMeta } from "#schemas/blob-storage/blob.ts"
import { isHeld, type Place } from "../blob-index/blob-index.ts"
import type { ExtentFiles } from "../extents/files.ts"
import { extentsOf, heldBytesOf, type RecordHead } from "../log/record.ts"
import { heldCopyOf, metaOf } from "../log/record-facts.ts"
import type { Index, LogReader } from "../parts.ts"
import { corrupt, type Quarantine } from "../upkeep/quarantine.ts"
import { window_bytes } from "./chunks.ts"
import { assertHash, type Copies, isSamePlace, moved, payloadSpan } from "./copies.ts"
import { damageOf } from "./damage.ts"
import { makeReadAhead, type ReadAhead, readByHash } from "./read-ahead.ts"
import { type BlobSpan, type FileOf, spanOf, type Windows, windowEnd } from "./windows.ts"

export interface ReadParts {
  readonly index: Index
  readonly log: LogReader
  readonly copies: Copies
  readonly windows: Windows
  readonly extents: ExtentFiles
  readonly quarantine: Quarantine
}

export type Verify = (id: BlobId, at: bigint) => Promise<RecordHead | undefined>

export interface Reads {
  /** Reads a whole copy. A shard is BlobNotFound. */
  readonly get: (id: BlobId, range: BlobRange, at: bigint) => Promise<BlobReading>
  /** Reads all of a small, recently read blob synchronously. Undefined: call `get`. */
  readonly getNow: (id: BlobId) => BlobReading | undefined
  /** Reads the copy or shard on this node, in its own bytes. */
  readonly read: (id: BlobId, range: BlobRange, at: bigint) => Promise<CopyReading>
  /**
   * Verifies all bytes of the copy or shard on this node, and returns its head. Undefined if there
   * is none, or if it is damaged.
   */
  readonly verify: Verify
  /** The head of the copy or shard on this node, without its content. */
  readonly head: (id: BlobId, at: bigint) => Promise<RecordHead>
  /** The metadata of a blob, from its record. `at` is the time to note if the record is damaged. */
  readonly stat: (id: BlobId, at: bigint) => Promise<BlobMeta>
}

/**
 * A record may move during a read, by compaction or by a delete and a put: the read starts over.
 */
const attempts_max = 100

const no_bytes = new Uint8Array(0)

/** Blobs up to this size are read whole and verified by their hash, before any byte is returned. */
const hashed_bytes_max = 2 * window_bytes

const absent: ReadonlySet<string> = new Set(["BlobNotFound", "BlobCorrupt"])

/** Whether a read failed because there is no copy, or no intact one. */
export const isAbsence = (cause: unknown) => absent.has(faultOf(cause)._tag)

async function* each(windows: ReadonlyArray<Uint8Array>): AsyncIterableIterator<Uint8Array> {
  yield* windows.filter(({ length }) => length > 0)
}

type MakeWindows = BlobReading["windows"]

/** The windows that were already read, for the first call. Later calls read them again. */
const firstThen = (firstTime: MakeWindows, again: MakeWindows): MakeWindows => {
  let is_first = true
  return () => {
    if (!is_first) return again()
    is_first = false
    return firstTime()
  }
}

const isWhole = ({ start, end }: BlobSpan, head: RecordHead) =>
  start === 0 && end === heldBytesOf(head)

const spanIn = (head: RecordHead, { offset, length }: BlobRange) =>
  spanOf(heldBytesOf(head), offset, length)

/** A reading, before it is mapped to one of a blob or of a copy. */
interface HeadReading extends Omit<BlobReading, "meta"> {
  readonly head: RecordHead
}

/** The current record of a blob, pinned while it is read. */
interface Source {
  readonly place: Place
  readonly head: RecordHead
  readonly unpin: () => void
}

/** Reads the copy or shard on this node to its end. */
const makeVerify =
  (
    { withLive }: Pick<Locator, "withLive">,
    readLive: (id: BlobId, place: Place, range: BlobRange, at: bigint) => Promise<HeadReading>,
  ): Verify =>
  async (id, at) => {
    try {
      return await withLive(id, async (place) => {
        const { head, data, windows, recycle: giveBack } = await readLive(id, place, {}, at)
        if (data === undefined) for await (const window of windows()) giveBack?.(window)
        return head
      })
    } catch (cause) {
      if (isAbsence(cause)) return undefined
      throw cause
    }
  }

const makeLocator = ({ index, copies, quarantine, extents }: ReadParts) => {
  const find = (id: BlobId): Place => {
    const place = index.find(id)
    if (!isHeld(place) || quarantine.isHidden(id, place)) {
      throw faultError({ _tag: "BlobNotFound", id })
    }
    return place
  }
  /** Runs a step on the live copy, and again if the copy moved in the meantime. */
  const withLive = async <A>(id: BlobId, step: (place: Place) => Promise<A>): Promise<A> => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await step(find(id))
      } catch (cause) {
        if (cause !== moved || attempt === attempts_max) throw cause
      }
    }
  }
  const headOf = (id: BlobId, place: Place, at: bigint) =>
    copies.guarded(
      { id, place, at },
      async (fileOf) => (await copies.record(id, place, fileOf)).head,
    )
  /** Opens a large blob. Its extents are not reused until `unpin`. */
  const open = (id: BlobId, at: bigint): Promise<Source> =>
    withLive(id, async (place) => {
      const head = await headOf(id, place, at)
      if (!isSamePlace(index.find(id), place)) throw moved
      return { place, head, unpin: extents.pin(extentsOf(head)) }
    })
  return { find, withLive, headOf, open }
}
type Locator = ReturnType<typeof makeLocator>

/** A large blob that is being read. `close` must always be called. */
const openLarge = async (
  { copies, windows, quarantine }: ReadParts,
  { find, open }: Locator,
  id: BlobId,
  at: bigint,
) => {
  let source = await open(id, at)
  let list = extentsOf(source.head)

  /** Runs a step that reads this copy, and again if the copy moved in the meantime. */
  const reading = async <A>(step: (fileOf?: FileOf) => Promise<A>): Promise<A> => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await copies.guarded({ id, place: source.place, at }, step)
      } catch (cause) {
        if (cause !== moved || attempt === attempts_max) throw cause
      }
      // The same id is the same content, wherever it is now.
      const next = await open(id, at)
      source.unpin()
      source = next
      list = extentsOf(source.head)
    }
  }
  const read = (window: BlobSpan) =>
    reading((fileOf) => windows.read(list, heldBytesOf(source.head), window, fileOf))
  /** Reads a window for a caller that verifies the hash of them all. */
  const readUnverified = (window: BlobSpan) =>
    reading((fileOf) => windows.readUnverified(list, heldBytesOf(source.head), window, fileOf))
  /** Compares the digest of all bytes with that of the record. */
  const check = async (digest: string) => {
    try {
      assertHash(source.head, digest)
    } catch (cause) {
      const damage = damageOf(cause)
      if (!damage) throw cause
      await quarantine.quarantine({ id, place: find(id), damage, at })
      throw corrupt(id, damage)
    }
  }
  const { head } = source
  return { head, read, readUnverified, check, close: () => source.unpin() }
}
type Large = Awaited<ReturnType<typeof openLarge>>

/**
 * The windows of a span, each verified by its checksums. The last window of a whole blob is
 * returned only after the hash was verified too. `first` is the first window, if it was already
 * read.
 */
async function* verifiedWindows({ head, read, check }: Large, span: BlobSpan, first?: Uint8Array) {
  let reading: Promise<Uint8Array> | undefined
  try {
    const hasher = isWhole(span, head) ? new Blake3Hasher() : undefined
    const begin = (start: number) => {
      const window = { start, end: windowEnd({ start, end: span.end }) }
      reading = read(window)
      // Awaited below, unless the consumer has left.
      reading.catch(() => undefined)
      return reading
    }
    for (let { start } = span; start < span.end; ) {
      const bytes = start === span.start && first ? first : await (reading ?? begin(start))
      start += bytes.length
      if (start < span.end) void begin(start)
      hasher?.update(bytes)
      if (start === span.end && hasher) await check(hasher.digest("base64"))
      yield bytes
    }
  } finally {
    await reading?.catch(() => undefined)
  }
}

/** The windows of a span of a large blob: those of a whole blob by its hash alone, if possible. */
async function* windowsOf(
  opened: Promise<Large>,
  readAhead: ReadAhead,
  range: BlobRange,
  first: Uint8Array | undefined,
) {
  const large = await opened
  try {
    const span = spanIn(large.head, range)
    if (isWhole(span, large.head) && (yield* readAhead(large, first ?? no_bytes))) return
    yield* verifiedWindows(large, span, first)
  } finally {
    large.close()
  }
}

const makeReadLarge =
  (parts: ReadParts, locator: Locator, readAhead: ReadAhead) =>
  async (id: BlobId, range: BlobRange, at: bigint): Promise<HeadReading> => {
    const large = await openLarge(parts, locator, id, at)
    const { head } = large
    const { giveBack } = parts.windows
    const singleWindow = (data: Uint8Array): HeadReading => ({
      head,
      data,
      windows: () => each([data]),
    })
    const readAgain = (first?: Uint8Array) =>
      windowsOf(openLarge(parts, locator, id, at), readAhead, range, first)
    const asWindows = (firstTime: MakeWindows): HeadReading => {
      const windows = firstThen(firstTime, () => readAgain())
      return { head, data: undefined, windows, recycle: giveBack }
    }
    try {
      const span = spanIn(head, range)
      if (isWhole(span, head) && span.end <= hashed_bytes_max) {
        const all =
          (await readByHash(large)) ?? (await Array.fromAsync(verifiedWindows(large, span)))
        const [first] = all
        if (all.length === 1 && first) return singleWindow(first)
        return asWindows(() => each(all))
      }
      const window = { start: span.start, end: windowEnd(span) }
      const first = window.start === window.end ? no_bytes : await large.read(window)
      if (window.end === span.end) return singleWindow(first)
      return asWindows(() => readAgain(first))
    } finally {
      large.close()
    }
  }

export const makeReads = (parts: ReadParts): Reads => {
  const { copies, log, index, quarantine } = parts
  const locator = makeLocator(parts)
  const { withLive, headOf } = locator
  const readLarge = makeReadLarge(parts, locator, makeReadAhead())

  const readSmall = (id: BlobId, place: Place, range: BlobRange, at: bigint) =>
    copies.guarded({ id, place, at }, async (fileOf): Promise<HeadReading> => {
      const record = await copies.record(id, place, fileOf)
      const { head } = record
      const data = payloadSpan(record, spanIn(head, range))
      return { head, data, windows: () => each([data]) }
    })
  const getNow = (id: BlobId): BlobReading | undefined => {
    const place = index.find(id)
    if (place?.kind !== "blob" || place.is_large || quarantine.isHidden(id, place)) return undefined
    try {
      const record = copies.recordSync(id, place)
      if (!record) return undefined
      const data = payloadSpan(record, { start: 0, end: heldBytesOf(record.head) })
      return { meta: metaOf(record.head), data, windows: () => each([data]) }
    } catch {
      // Damage, or an error of the disk: `get` runs into it too, and handles it.
      return undefined
    }
  }
  const readLive = (id: BlobId, place: Place, range: BlobRange, at: bigint) =>
    place.is_large ? readLarge(id, range, at) : readSmall(id, place, range, at)
  return {
    getNow,
    verify: makeVerify(locator, readLive),
    get: (id, range, at) =>
      withLive(id, async (place) => {
        if (place.kind === "shard") throw faultError({ _tag: "BlobNotFound", id })
        const { head: found, ...reading } = await readLive(id, place, range, at)
        return { meta: metaOf(found), ...reading }
      }),
    read: (id, range, at) =>
      withLive(id, async (place) => {
        const { head: found, data, windows } = await readLive(id, place, range, at)
        return { copy: heldCopyOf(found), meta: metaOf(found), data, windows }
      }),
    stat: (id, at) => withLive(id, async (place) => metaOf(await headOf(id, place, at))),
    head: (id, at) =>
      withLive(id, async (place) => (await log.head(id, place)) ?? headOf(id, place, at)),
  }
}
