/**
 * Exports the log, or a part of it, as JSON lines that can be verified independently.
 *
 * Each line is a stored commit; the last line is a manifest. The text between `"commit":` and the
 * closing brace of a line is exactly the text whose SHA-256 is `hash`, so that readers do not
 * depend on our JSON formatting.
 *
 * Source: DECISIONS "audit log for operators".
 */
import { DateTime, Effect, Stream } from "effect"
import { Notary, sealedTrees, signedHead } from "#actors/system/notary.ts"
import { hexOf, openTree, rootOf } from "#actors/system/tree.ts"
import {
  type Entry,
  isReadable,
  Log,
  type LogUnavailable,
  type Part,
  type Recorded,
} from "#events/log.ts"
import { lineOf } from "#events/log-line.ts"
import type { ExportManifest } from "#schemas/system/audit.ts"

export interface ExportRequest {
  readonly part: Part
  /** Epoch milliseconds; `until` is exclusive. */
  readonly since?: number | undefined
  readonly until?: number | undefined
}

/**
 * The part of the log for a service and an aggregate: `cluster` of a service, or
 * `service.aggregate` or `service.aggregate.id` alone. Undefined if the combination is invalid.
 */
export const partOf = (service: string | undefined, aggregate: string | undefined) => {
  if (aggregate === undefined) return service ?? ""
  if (service === undefined) return aggregate.includes(".") ? aggregate : undefined
  return aggregate.includes(".") ? undefined : `${service}.${aggregate}`
}

/** Maximum number of aggregates and of checkpoints in the manifest; the last ones are kept. */
const listed_max = 1000

/** Commits per chunk; the thread is yielded between chunks. Usually 50 KB, at most 25 MB. */
const piece_commits = 50

const msOf = ({ commit }: Recorded) => DateTime.toEpochMillis(DateTime.makeUnsafe(commit.at))

/** Collects the manifest's summary of the lines. */
const tally = () => {
  const heads = new Map<string, { readonly position: number; readonly hash: string }>()
  let left_out = 0
  let count = 0
  let first: number | undefined
  let last: number | undefined
  return {
    take: ({ position, stream, hash }: Entry) => {
      count++
      first ??= position
      last = position
      heads.delete(stream)
      heads.set(stream, { position, hash })
      const [oldest] = heads.size > listed_max ? heads.keys() : []
      if (oldest === undefined) return
      heads.delete(oldest)
      left_out++
    },
    summary: () => ({
      count,
      first: first ?? null,
      last: last ?? null,
      heads: [...heads].map(([stream, head]) => ({ stream, ...head })),
      heads_complete: left_out === 0,
    }),
  }
}

/** The last checkpoints whose trees cover a commit of the export. */
const checkpointsFrom = (log: Log["Service"], first: number | null) =>
  sealedTrees().pipe(
    Stream.filter(({ tree }) => first !== null && tree.size >= first),
    Stream.map(({ position, tree }) => ({
      position,
      size: tree.size,
      root: hexOf(rootOf(log.digest, openTree(tree))),
    })),
    Stream.runFold(
      (): ExportManifest["checkpoints"] => [],
      (some, one) => [...some.slice(1 - listed_max), one],
    ),
  )

/** The lines up to the log's current end, in chunks of whole lines. */
export const exportChunks = ({
  part,
  since = Number.NEGATIVE_INFINITY,
  until = Number.POSITIVE_INFINITY,
}: ExportRequest): Stream.Stream<string, LogUnavailable, Log | Notary> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const log = yield* Log
      const notary = yield* Notary
      const position = yield* log.end
      const hashing = notary.hashing()
      const { take, summary } = tally()

      const text = (chunk: ReadonlyArray<Entry>) => {
        const selected = chunk.filter((one) => {
          // An unreadable entry has no time, so every export includes it.
          if (!isReadable(one)) return true
          const at = msOf(one)
          return at >= since && at < until
        })
        const lines = selected.map(lineOf).join("")
        for (const one of selected) take(one)
        hashing.add(lines)
        return lines
      }
      const manifest = Effect.gen(function* () {
        const found = summary()
        const checkpoints = yield* checkpointsFrom(log, found.first)
        const head = yield* signedHead
        const all: ExportManifest = {
          manifest: 1,
          part,
          position,
          ...found,
          checkpoints,
          ...(head === undefined ? {} : { head, key: notary.key.verifier }),
          sha256: hashing.end(),
        }
        return `${JSON.stringify(all)}\n`
      })
      return log.entries(part).pipe(
        Stream.takeWhile((one) => one.position <= position),
        Stream.rechunk(piece_commits),
        Stream.mapArrayEffect((chunk) => Effect.as(Effect.yieldNow, [text(chunk)] as const)),
        Stream.filter((lines) => lines !== ""),
        Stream.concat(Stream.fromEffect(manifest)),
      )
    }),
  )
