/**
 * One aggregate's history, read directly from the log. Source: DECISIONS "audit log for operators".
 */
import { Effect, Option, Stream, Struct } from "effect"
import { Log, type LogUnavailable, type Recorded } from "#events/log.ts"
import type { AuditCommit, AuditHistory, AuditState, SnapshotThen } from "#schemas/system/audit.ts"

/** A page ends early at this size, in bytes of JSON: a single commit may have 512 KB. */
const page_bytes_max = 8 * 1024 * 1024

export interface AggregateName {
  readonly service: string
  readonly aggregate: string
  readonly id: string
}

/** A moment of an aggregate: after its last commit up to this position, or this time. */
export type Moment =
  | { readonly position: number }
  /** Epoch milliseconds. */
  | { readonly at: number }

const streamOf = ({ service, aggregate, id }: AggregateName) => `${service}.${aggregate}.${id}`

/** A commit as operators see it, without the ids of earlier commands. */
const toAuditCommit = ({ position, commit, hash }: Recorded): AuditCommit => {
  const { commands, events, snapshot, ...rest } = Struct.omit(commit, ["v"])
  return {
    position,
    ...rest,
    // The log's own JSON.
    events: events as unknown as AuditCommit["events"],
    snapshot: snapshot as typeof SnapshotThen.Type,
    command_id: commands.at(-1) ?? "",
    hash,
  }
}

/** A page of the commits after `after`, oldest first; undefined if the aggregate has none. */
export const history = Effect.fnUntraced(function* (
  name: AggregateName,
  { limit, after }: { readonly limit: number; readonly after: number },
): Effect.fn.Return<AuditHistory | undefined, LogUnavailable, Log> {
  const log = yield* Log
  const stream = streamOf(name)
  const last = yield* log.load(stream)
  if (last === undefined) return undefined
  let bytes = 0
  const commits = yield* log.read(stream, after).pipe(
    Stream.map(toAuditCommit),
    Stream.take(limit),
    Stream.takeUntil((commit) => {
      bytes += JSON.stringify(commit).length
      return bytes > page_bytes_max
    }),
    Stream.runCollect,
  )
  const end = commits.at(-1)?.position ?? last.position
  const more = end < last.position ? { next_marker: String(end) } : {}
  return { ...name, commits, ...more }
})

/** The aggregate's state at a moment; undefined if it had no commit yet. */
export const stateAt = Effect.fnUntraced(function* (
  name: AggregateName,
  moment: Moment,
): Effect.fn.Return<AuditState | undefined, LogUnavailable, Log> {
  const log = yield* Log
  const stream = streamOf(name)
  const last = yield* log.load(stream)
  if (last === undefined) return undefined
  const found = isBy(moment, last) ? last : yield* lastBy(moment, log.read(stream))
  if (found === undefined) return undefined
  const { position, commit } = found
  const { at, actor, snapshot } = commit
  // The log's own JSON.
  return { ...name, position, at, actor, state: snapshot as typeof SnapshotThen.Type }
})

/**
 * Clocks of several machines differ: selects the last commit, in the log's order, that is not
 * later.
 */
const lastBy = (moment: Moment, commits: Stream.Stream<Recorded, LogUnavailable>) => {
  const near =
    "position" in moment ? Stream.takeWhile(commits, (one) => isBy(moment, one)) : commits
  return near.pipe(
    Stream.filter((one) => isBy(moment, one)),
    Stream.runLast,
    Effect.map(Option.getOrUndefined),
  )
}

const isBy = (moment: Moment, { position, commit }: Recorded) =>
  "position" in moment ? position <= moment.position : Date.parse(commit.at) <= moment.at
