/**
 * The guard of the log over JetStream: compares the log with the high-water mark when the log is
 * opened and after each lost connection, and makes the log read-only when commits are missing.
 *
 * Source: docs/decisions/0169.
 */
import type { StoredMsg, StreamInfo, StreamState } from "@nats-io/jetstream"
import { Context, Effect, Option, Schema } from "effect"
import {
  type Finding,
  findingText,
  type Guard,
  type Missing,
  remedy,
  withoutRanges,
} from "#events/log-guard.ts"
import { RestorationContext, restoration_stream } from "#events/system/restoration.ts"
import { sha256 } from "../commits/codec.ts"
import type { Mark, MarkWriter } from "./high-water-mark.ts"

/** The guard of this process, with the inputs from the log over JetStream. */
export interface Watch extends Guard {
  /** The last commit known to have been in the log, if any. */
  readonly known: () => Mark | undefined
  /** Sets the stream that holds the log. */
  readonly identify: (info: Pick<Found, "config" | "created">) => void
  /** Sets the restores and accepted losses recorded in the log. */
  readonly setRestorations: (context: typeof RestorationContext.Type) => void
  /** The mark's commit was found in the log, so a witness with an earlier one is itself wrong. */
  readonly confirm: () => void
  /** Ranges of accepted losses. */
  readonly accepted: () => ReadonlyArray<Missing>
  /** Advances the mark to an acknowledged commit. */
  readonly advance: (position: number, bytes: Uint8Array) => void
  /** Removes the preserved files of the log. */
  readonly release: Effect.Effect<void>
  /** Sets the mark to the log's current state, including its restores. */
  readonly settle: (last: Pick<Mark, "position" | "hash">) => Effect.Effect<void>
}

export class LogWatch extends Context.Service<LogWatch, Watch>()("almanac/adapters/LogWatch") {}

/**
 * Makes a guard from the last mark. `mark_writer` is defined if this process may write the mark;
 * `release` runs when the log is found to be complete.
 */
export const newWatch = (
  mark: Mark | undefined,
  mark_writer?: MarkWriter,
  release: Effect.Effect<void> = Effect.void,
): Watch => {
  const known = () => (mark_writer === undefined ? mark : mark_writer.known())
  const findings: Array<Finding> = []
  let context: typeof RestorationContext.Type = { restores: [] }
  let is_confirmed = false

  /** Restores since this data folder was last used with the log. */
  const newRestores = () => {
    const known = context.restores.findIndex(({ restore_id }) => restore_id === mark?.restore_id)
    return context.restores.slice(known + 1)
  }
  const problem = () => {
    const [first] = findings
    if (first === undefined) return undefined
    const others = findings.length > 1 ? ` (and ${findings.length - 1} more findings)` : ""
    return `The log is read-only, because ${findingText(first)}${others}. ${remedy}`
  }
  const close = (finding: Finding) =>
    Effect.suspend(() => {
      const is_known = findings.some(
        ({ kind, witness }) => kind === finding.kind && witness === finding.witness,
      )
      if (is_known) return Effect.void
      findings.push(finding)
      return Effect.logError(
        `The log is incomplete: ${findingText(finding)}. It is read-only. ${remedy}`,
      )
    })
  return {
    known,
    identify: ({ config, created }) =>
      mark_writer?.identify({ stream: config.name, stream_created: created }),
    problem,
    findings: () => findings,
    close,
    setRestorations: (found) => {
      context = found
    },
    confirm: () => {
      is_confirmed = true
    },
    accepted: () => context.accepted ?? [],
    isExplained: Effect.fnUntraced(function* ({ name, position }, head) {
      const is_closed = findings.length > 0
      const is_confirmed_later = is_confirmed && (known()?.position ?? 0) >= position
      if (is_confirmed_later || newRestores().some((restore) => restore.position < position)) {
        return !is_closed
      }
      // A loss at the end is reported in addition to gaps that were found first.
      if (is_closed && position <= head) return false
      const missing = [{ from: Math.min(head + 1, position), to: position }]
      const kind = position > head ? "shorter" : "other"
      yield* close({ kind, witness: name, position, head, missing })
      return false
    }),
    release,
    advance: (position, bytes) => mark_writer?.advance(position, bytes),
    settle: (last) => {
      if (mark_writer === undefined) return Effect.void
      const restore_id = context.restores.at(-1)?.restore_id ?? null
      return mark_writer
        .settle({ ...last, restore_id })
        .pipe(Effect.catch(({ message }) => Effect.logWarning(message)))
    },
  }
}

/** The part of JetStream's stream info that the guard reads. */
interface Found extends Pick<StreamInfo, "created"> {
  readonly config: Pick<StreamInfo["config"], "name">
  readonly state: Pick<StreamState, "first_seq" | "last_seq" | "messages"> & {
    /** Only if requested. */
    readonly deleted?: ReadonlyArray<number>
  }
}

/** The part of a JetStreamManager that the guard uses. */
export interface StreamQueries {
  readonly streams: {
    info(stream: string, options?: { readonly deleted_details: boolean }): Promise<Found>
    getMessage(
      stream: string,
      query: { readonly seq: number } | { readonly last_by_subj: string },
    ): Promise<Pick<StoredMsg, "data" | "string"> | null>
  }
}

/** The log's stream, its expected layout, and the API to query it. */
export interface Watched {
  readonly jsm: StreamQueries
  readonly stream: string
  /** First token of its subjects. */
  readonly head: string
  /** The stream's configured first sequence. */
  readonly first: number
  /** The last position of the previous generation; earlier positions are not in this stream. */
  readonly base: number
}

const mark_name = "the high-water mark"

/** Decodes the restores recorded in the log; none if unreadable. */
const decodeRestorations = Schema.decodeUnknownOption(
  Schema.fromJsonString(
    Schema.Struct({ snapshot: Schema.Struct({ context: RestorationContext }) }),
  ),
)

const restorationsOf = async ({ jsm, stream, head }: Watched) => {
  const query = { last_by_subj: `${head}.${restoration_stream}` }
  const last = await jsm.streams.getMessage(stream, query)
  if (last === null) return undefined
  return Option.getOrUndefined(decodeRestorations(last.string()))?.snapshot.context
}

/** Merges consecutive sequences into ranges. */
const rangesOf = (sequences: ReadonlyArray<number>): ReadonlyArray<Missing> => {
  const ranges: Array<{ from: number; to: number }> = []
  for (const sequence of sequences.toSorted((one, other) => one - other)) {
    const last = ranges.at(-1)
    if (last !== undefined && last.to === sequence - 1) last.to = sequence
    else ranges.push({ from: sequence, to: sequence })
  }
  return ranges
}

/** Sequences missing between the first and the last of the stream. */
const gapsIn = async ({ jsm, stream, first }: Watched, { state }: Found) => {
  const whole = state.last_seq - first + 1
  if (state.last_seq < first || state.messages === whole) return []
  // A stream that begins after its configured first sequence has lost messages at the front.
  const front = state.first_seq > first ? [{ from: first, to: state.first_seq - 1 }] : []
  const { state: detailed } = await jsm.streams.info(stream, { deleted_details: true })
  const deleted = detailed.deleted ?? []
  return [...front, ...rangesOf(deleted.filter((sequence) => sequence >= state.first_seq))]
}

const hashAt = async ({ jsm, stream }: Watched, seq: number) => {
  const found = await jsm.streams.getMessage(stream, { seq })
  return found === null ? undefined : sha256(found.data)
}

/** Closes a log whose stream is gone, if this process has seen commits of it. */
export const checkAbsent = Effect.fnUntraced(function* (watch: Watch) {
  const mark = watch.known()
  if (mark === undefined) return
  yield* watch.close({
    kind: "absent",
    witness: mark_name,
    position: mark.position,
    head: 0,
    missing: [{ from: 1, to: mark.position }],
  })
})

/**
 * Checks the stream for gaps and compares it with the mark; closes the log if commits are missing
 * that no restore or accepted loss explains.
 */
export const checkStream = Effect.fnUntraced(function* (watch: Watch, watched: Watched) {
  yield* compare(watch, watched)
  if (watch.problem() === undefined) yield* watch.release
})

const compare = Effect.fnUntraced(function* (watch: Watch, watched: Watched) {
  const mark = watch.known()
  const info = yield* attempt(() => watched.jsm.streams.info(watched.stream))
  watch.identify(info)
  const head = info.state.last_seq
  const context = yield* attempt(() => restorationsOf(watched))
  if (context !== undefined) watch.setRestorations(context)

  const gaps = withoutRanges(yield* attempt(() => gapsIn(watched, info)), watch.accepted())
  if (gaps.length > 0) {
    const position = gaps.at(-1)?.to ?? head
    yield* watch.close({ kind: "gap", witness: "its stream", position, head, missing: gaps })
  }
  if (mark === undefined) return
  const { position, hash } = mark
  const witness = { name: mark_name, position }
  if (mark.stream === watched.stream && mark.stream_created !== info.created) {
    if (yield* watch.isExplained(witness, head)) return
    // This is another log: none of its commits are ours, even at equal positions.
    const missing = [{ from: 1, to: position }]
    yield* watch.close({ kind: "other", witness: "the stream's identity", position, head, missing })
    return
  }
  if (position > head) {
    yield* watch.isExplained(witness, head)
    return
  }
  // An archive of an earlier generation was verified against its stream when it was written.
  if (position <= watched.base) return
  const found = yield* attempt(() => hashAt(watched, position))
  if (found === hash) watch.confirm()
  else if (found !== undefined) yield* watch.isExplained(witness, head)
})

const attempt = <A>(run: () => Promise<A>) =>
  Effect.tryPromise({ try: run, catch: (cause) => cause })
