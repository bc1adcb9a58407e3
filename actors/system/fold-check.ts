/** Checks that each snapshot follows from the previous one by its commit's events. */
import { Equal, Result, Schema } from "effect"
import type { AnyDecider } from "#actors/decider.ts"
import { parseStream, type Recorded } from "#events/log.ts"
import type { Message } from "#schemas/message.ts"
import type { Fault } from "#schemas/system/audit.ts"

/** Memory for states, in bytes of their JSON; other states are read from the log again. */
const held_bytes_max = 64 * 1024 * 1024

/** Longest excerpt of a snapshot in a fault, in characters. */
const excerpt_chars_max = 300

interface Held {
  readonly state: unknown
  readonly bytes: number
}

/** A stream whose state is unknown after a fault; checking resumes from its next snapshot. */
const lost = Symbol("lost")

export interface FoldCheck {
  /** True if `begin` must provide the stream's last state before its next commit. */
  readonly lacks: (stream: string) => boolean
  /** Takes the stream's state from a commit's snapshot. */
  readonly begin: (recorded: Recorded) => void
  /** Folds a commit's events and returns a fault if the snapshot does not match. */
  readonly check: (recorded: Recorded) => Fault | undefined
  /** Number of commits folded so far. */
  readonly folded: () => number
}

interface Kind {
  readonly decider: AnyDecider
  readonly decode: (event: Message) => Message
}

const excerpt = (value: unknown) => {
  const text = JSON.stringify(value) ?? "nothing"
  return text.length > excerpt_chars_max ? `${text.slice(0, excerpt_chars_max)}...` : text
}

/** The snapshot of a state as it would be in the log. */
const saved = ({ decider }: Kind, state: unknown) => {
  const json = JSON.stringify(decider.save(state))
  const snapshot: unknown = JSON.parse(json)
  return { snapshot, bytes: json.length }
}

/** Applies events; fails with a message if an event has no transition. */
const folded = ({ decider, decode }: Kind, before: unknown, { commit }: Recorded) =>
  Result.try({
    try: () => commit.events.reduce((state, event) => decider.evolve(state, decode(event)), before),
    catch: (cause) => String(cause).split("\n", 1)[0] ?? "",
  })

/** An LRU cache of states, bounded by bytes. */
const states = (bytes_max: number) => {
  const held = new Map<string, Held | typeof lost>()
  let bytes = 0
  const drop = (stream: string) => {
    const old = held.get(stream)
    held.delete(stream)
    if (old !== undefined && old !== lost) bytes -= old.bytes
  }
  return {
    get: (stream: string) => held.get(stream),
    drop,
    lose: (stream: string) => {
      drop(stream)
      held.set(stream, lost)
    },
    put: (stream: string, state: unknown, size: number) => {
      drop(stream)
      held.set(stream, { state, bytes: size })
      bytes += size
      for (const oldest of held.keys()) {
        if (bytes <= bytes_max || oldest === stream) break
        drop(oldest)
      }
    },
  }
}

/** Checks the snapshots of these kinds of aggregates; it ignores others. */
export const foldCheck = (
  deciders: ReadonlyArray<AnyDecider>,
  bytes_max = held_bytes_max,
): FoldCheck => {
  const kinds = new Map<string, Kind>(
    deciders.map((decider) => {
      const decode = Schema.decodeUnknownSync(decider.event)
      return [decider.name, { decider, decode }]
    }),
  )
  const kindOf = (stream: string) => kinds.get(parseStream(stream).name)
  const held = states(bytes_max)
  let count = 0

  const begin = ({ stream, commit }: Recorded) => {
    const kind = kindOf(stream)
    if (kind === undefined) return
    const state = kind.decider.restore(commit.snapshot)
    if (state === undefined) held.lose(stream)
    else held.put(stream, state, saved(kind, state).bytes)
  }

  /** The snapshot to compare with, converted to the current machine version. */
  const comparable = (kind: Kind, { commit }: Recorded, machine: number) => {
    if (commit.snapshot.machine === machine) return commit.snapshot
    const state = kind.decider.restore(commit.snapshot)
    return state === undefined ? undefined : saved(kind, state).snapshot
  }

  const check = (recorded: Recorded): Fault | undefined => {
    const { stream, position, commit } = recorded
    const kind = kindOf(stream)
    if (kind === undefined) return undefined
    const last = held.get(stream)
    if (last === lost) {
      begin(recorded)
      return undefined
    }
    count++
    const before = last === undefined ? kind.decider.initialState : last.state
    const result = folded(kind, before, recorded)
    const fault = { kind: "snapshot", position, stream } as const
    if (Result.isFailure(result)) {
      held.lose(stream)
      const types = commit.events.map(({ type }) => type).join(", ")
      return { ...fault, expected: `${types} can happen`, found: result.failure }
    }
    const { snapshot, bytes } = saved(kind, result.success)
    held.put(stream, result.success, bytes)
    const stored = comparable(kind, recorded, kind.decider.save(result.success).machine)
    if (stored === undefined || Equal.equals(snapshot, stored)) return undefined
    held.lose(stream)
    return { ...fault, expected: excerpt(snapshot), found: excerpt(stored) }
  }

  return {
    lacks: (stream) => kindOf(stream) !== undefined && held.get(stream) === undefined,
    begin,
    check,
    folded: () => count,
  }
}
