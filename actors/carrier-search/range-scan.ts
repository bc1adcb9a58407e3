/**
 * Scans a range: looks up several numbers concurrently and emits the results in order. Memory is
 * bounded, however long the range is.
 */
import { Cause, Effect, Latch, Stream } from "effect"
import type { FoundCarrier, Lookup, LookupFailed } from "#actors/carrier-search/lookup.ts"
import { type Piece, SearchFailed } from "#actors/carrier-search/registry.ts"
import { type Range, total } from "#schemas/carrier-search/carrier.ts"
import { type Format, rowOf } from "#schemas/carrier-search/format.ts"

/** How far lookups run ahead of the first number that is pending or not emitted. */
const ahead_max = 4096
/** Characters after which a piece is emitted. */
const piece_chars = 65_536

export interface RangeScanOptions {
  readonly range: Range
  readonly format: Format
  readonly lookUp: Lookup
  /** Number of concurrent lookups. */
  readonly concurrency: number
}

interface RangeScan extends Pick<RangeScanOptions, "range" | "format"> {
  /** The next number to look up. */
  next: number
  /** The first number that is not emitted. */
  base: number
  found: number
  /** Results from `base` on; the index is the number modulo the length. */
  readonly ring: Array<ReadonlyArray<FoundCarrier> | undefined>
  /** Open when there may be results to emit. */
  readonly ready: Latch.Latch
  /** Open when the ring may have room. */
  readonly room: Latch.Latch
  failed: SearchFailed | undefined
  died: Cause.Cause<never> | undefined
}

/** Emits the range in pieces; fails with the first failed number. */
export const scanRange = (options: RangeScanOptions): Stream.Stream<Piece, SearchFailed> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const { range, format, concurrency } = options
      const size = Math.min(ahead_max, total(range))
      const scan: RangeScan = {
        range,
        format,
        next: range.start,
        base: range.start,
        found: 0,
        ring: Array.from({ length: size }, () => undefined),
        ready: Latch.makeUnsafe(false),
        room: Latch.makeUnsafe(true),
        failed: undefined,
        died: undefined,
      }
      const workers = Array.from({ length: Math.min(concurrency, size) }, () =>
        lookUpNumbers(scan, options.lookUp),
      )
      // The first failure interrupts the other workers and their lookups.
      const all = Effect.all(workers, { concurrency: "unbounded", discard: true })
      yield* Effect.forkScoped(Effect.catchCause(all, (cause) => end(scan, cause)))
      return Stream.fromPull(Effect.succeed(pull(scan)))
    }),
  )

const lookUpNumbers = Effect.fnUntraced(function* (scan: RangeScan, lookUp: Lookup) {
  const { ring, range } = scan
  while (scan.next <= range.end) {
    if (scan.next >= scan.base + ring.length) {
      scan.room.closeUnsafe()
      yield* scan.room.await
      continue
    }
    const mc = scan.next
    scan.next += 1
    ring[mc % ring.length] = yield* Effect.tapError(lookUp(mc), (failure) =>
      recordFailure(scan, mc, failure),
    )
    if (mc === scan.base) scan.ready.openUnsafe()
  }
})

const recordFailure = (scan: RangeScan, mc: number, { reason }: LookupFailed) =>
  Effect.sync(() => {
    const { failed = 0, first = mc, reason: before = reason } = scan.failed ?? {}
    const lowest = mc <= first ? { first: mc, reason } : { first, reason: before }
    scan.failed = new SearchFailed({ failed: failed + 1, ...lowest })
  })

const end = (scan: RangeScan, cause: Cause.Cause<LookupFailed>) =>
  Effect.sync(() => {
    if (!scan.failed) scan.died = Cause.die(Cause.squash(cause))
    scan.ready.openUnsafe()
  })

/** The next piece, as soon as its first number is known. */
const pull = (scan: RangeScan) =>
  Effect.gen(function* () {
    const { range, ring } = scan
    for (;;) {
      if (scan.died) return yield* Effect.failCause(scan.died)
      if (scan.failed) return yield* scan.failed
      if (scan.base > range.end) return yield* Cause.done()
      if (ring[scan.base % ring.length]) return [takePiece(scan)] as const
      scan.ready.closeUnsafe()
      yield* scan.ready.await
    }
  })

const utf8 = new TextEncoder()

const takePiece = (scan: RangeScan): Piece => {
  const { ring, range, format } = scan
  let text = ""
  while (scan.base <= range.end && text.length < piece_chars) {
    const at = scan.base % ring.length
    const carriers = ring[at]
    if (!carriers) break
    for (const { name } of carriers) text += rowOf(scan.base, name, format)
    scan.found += carriers.length
    ring[at] = undefined
    scan.base += 1
  }
  scan.room.openUnsafe()
  return { done: scan.base - range.start, found: scan.found, rows: utf8.encode(text) }
}
