/**
 * The log, or a part of it, as lines of JSON that can be checked without us.
 *
 * Each line is a commit as it is stored, the last is a manifest. What stands between `"commit":`
 * and the closing brace of a line is the very text whose SHA-256 is `hash`, so a reader need not
 * write JSON as we do.
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

export interface ExportAsked {
  readonly part: Part
  /** Epoch milliseconds; `until` is not counted in. */
  readonly since?: number | undefined
  readonly until?: number | undefined
}

/**
 * The part of the log that a service and an aggregate name: `cluster` of a service, or
 * `service.aggregate` or `service.aggregate.id` alone. Undefined where they name none.
 */
export const partOf = (service: string | undefined, aggregate: string | undefined) => {
  if (aggregate === undefined) return service ?? ""
  if (service === undefined) return aggregate.includes(".") ? aggregate : undefined
  return aggregate.includes(".") ? undefined : `${service}.${aggregate}`
}

/** Aggregates whose last hash the manifest tells, and checkpoints: the last ones of each. */
const told_max = 1000

/** Commits of a piece, between which others have the thread: 50 KB as a rule, and 25 MB at most. */
const piece_commits = 50

const msOf = ({ commit }: Recorded) => DateTime.toEpochMillis(DateTime.makeUnsafe(commit.at))

/** What the manifest tells of the lines before it. */
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
      const [oldest] = heads.size > told_max ? heads.keys() : []
      if (oldest === undefined) return
      heads.delete(oldest)
      left_out++
    },
    told: () => ({
      count,
      first: first ?? null,
      last: last ?? null,
      heads: [...heads].map(([stream, head]) => ({ stream, ...head })),
      heads_complete: left_out === 0,
    }),
  }
}

/** The last checkpoints whose trees hold a commit of the stretch. */
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
      (some, one) => [...some.slice(1 - told_max), one],
    ),
  )

/** The lines, up to the log's end at this moment, in pieces of whole lines. */
export const exported = ({
  part,
  since = Number.NEGATIVE_INFINITY,
  until = Number.POSITIVE_INFINITY,
}: ExportAsked): Stream.Stream<string, LogUnavailable, Log | Notary> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const log = yield* Log
      const notary = yield* Notary
      const position = yield* log.end
      const hashing = notary.hashing()
      const { take, told } = tally()

      const text = (stretch: ReadonlyArray<Entry>) => {
        const asked = stretch.filter((one) => {
          // Its time is unknown: it is in every stretch.
          if (!isReadable(one)) return true
          const at = msOf(one)
          return at >= since && at < until
        })
        const lines = asked.map(lineOf).join("")
        for (const one of asked) take(one)
        hashing.add(lines)
        return lines
      }
      const manifest = Effect.gen(function* () {
        const found = told()
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
        Stream.mapArrayEffect((stretch) => Effect.as(Effect.yieldNow, [text(stretch)] as const)),
        Stream.filter((lines) => lines !== ""),
        Stream.concat(Stream.fromEffect(manifest)),
      )
    }),
  )
