/**
 * Scans a range: looks up several numbers concurrently and emits the results in order. Memory is
 * bounded, however long the range is.
 */
import { Cause, Effect, Latch, Stream } from "effect"
import type { Found, Lookup, LookupFailed } from "#actors/carrier-search/lookup.ts"
import { type Piece, SearchFailed } from "#actors/carrier-search/registry.ts"
import { type Range, total } from "#schemas/carrier-search/carrier.ts"
import { type Format, rowOf } from "#schemas/carrier-search/format.ts"

/** How far lookups run ahead of the first number that is pending or not emitted. */
const ahead_max = 4096
/** Characters after which a piece is emitted. */
const piece_chars = 65_536

export interface WalkOptions {
  readonly range: Range
  readonly format: Format
  readonly ask: Lookup
  /** Number of concurrent lookups. */
  readonly at_once: number
}

interface Walk extends Pick<WalkOptions, "range" | "format"> {
  /** The next number to look up. */
  next: number
  /** The first number that is not emitted. */
  base: number
  found: number
  /** Results from `base` on; the index is the number modulo the length. */
  readonly ring: Array<ReadonlyArray<Found> | undefined>
  /** Open when there may be results to emit. */
  readonly ready: Latch.Latch
  /** Open when the ring may have room. */
  readonly room: Latch.Latch
  failed: SearchFailed | undefined
  died: Cause.Cause<never> | undefined
}

/** Emits the range in pieces; fails with the first failed number. */
export const walk = (options: WalkOptions): Stream.Stream<Piece, SearchFailed> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const { range, format, at_once } = options
      const size = Math.min(ahead_max, total(range))
      const it: Walk = {
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
      const workers = Array.from({ length: Math.min(at_once, size) }, () => work(it, options.ask))
      // The first failure interrupts the other workers and their lookups.
      const all = Effect.all(workers, { concurrency: "unbounded", discard: true })
      yield* Effect.forkScoped(Effect.catchCause(all, (cause) => end(it, cause)))
      return Stream.fromPull(Effect.succeed(pull(it)))
    }),
  )

const work = Effect.fnUntraced(function* (it: Walk, ask: Lookup) {
  const { ring, range } = it
  while (it.next <= range.end) {
    if (it.next >= it.base + ring.length) {
      it.room.closeUnsafe()
      yield* it.room.await
      continue
    }
    const mc = it.next
    it.next += 1
    ring[mc % ring.length] = yield* Effect.tapError(ask(mc), (failure) => note(it, mc, failure))
    if (mc === it.base) it.ready.openUnsafe()
  }
})

const note = (it: Walk, mc: number, { reason }: LookupFailed) =>
  Effect.sync(() => {
    const { failed = 0, first = mc, reason: before = reason } = it.failed ?? {}
    const lowest = mc <= first ? { first: mc, reason } : { first, reason: before }
    it.failed = new SearchFailed({ failed: failed + 1, ...lowest })
  })

const end = (it: Walk, cause: Cause.Cause<LookupFailed>) =>
  Effect.sync(() => {
    if (!it.failed) it.died = Cause.die(Cause.squash(cause))
    it.ready.openUnsafe()
  })

/** The next piece, as soon as its first number is known. */
const pull = (it: Walk) =>
  Effect.gen(function* () {
    const { range, ring } = it
    for (;;) {
      if (it.died) return yield* Effect.failCause(it.died)
      if (it.failed) return yield* it.failed
      if (it.base > range.end) return yield* Cause.done()
      if (ring[it.base % ring.length]) return [takePiece(it)] as const
      it.ready.closeUnsafe()
      yield* it.ready.await
    }
  })

const utf8 = new TextEncoder()

const takePiece = (it: Walk): Piece => {
  const { ring, range, format } = it
  let text = ""
  while (it.base <= range.end && text.length < piece_chars) {
    const at = it.base % ring.length
    const carriers = ring[at]
    if (!carriers) break
    for (const { name } of carriers) text += rowOf(it.base, name, format)
    it.found += carriers.length
    ring[at] = undefined
    it.base += 1
  }
  it.room.openUnsafe()
  return { done: it.base - range.start, found: it.found, rows: utf8.encode(text) }
}
