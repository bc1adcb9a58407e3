/** Whether each snapshot is what its commit's events make of the one before. */
import { Equal, Result, Schema } from "effect"
import type { AnyDecider } from "#actors/decider.ts"
import { parseStream, type Recorded } from "#events/log.ts"
import type { Message } from "#schemas/message.ts"
import type { Fault } from "#schemas/system/audit.ts"

/** States held at once, as bytes of their JSON; the others are read from the log again. */
const held_bytes_max = 64 * 1024 * 1024

/** Longest part of a snapshot that a fault shows, in characters. */
const shown_chars_max = 300

interface Held {
  readonly state: unknown
  readonly bytes: number
}

/** A stream whose state is not known after a fault: its next snapshot is the new beginning. */
const lost = Symbol("lost")

export interface FoldCheck {
  /** Whether the stream's last state must be given by `begin` before its next commit. */
  readonly lacks: (stream: string) => boolean
  /** Takes a commit's own snapshot for the stream's state. */
  readonly begin: (recorded: Recorded) => void
  /** Folds a commit's events; what does not fit is answered. */
  readonly check: (recorded: Recorded) => Fault | undefined
  /** Commits that were folded so far. */
  readonly folded: () => number
}

interface Kind {
  readonly decider: AnyDecider
  readonly decode: (event: Message) => Message
}

const shown = (value: unknown) => {
  const text = JSON.stringify(value) ?? "nothing"
  return text.length > shown_chars_max ? `${text.slice(0, shown_chars_max)}...` : text
}

/** The snapshot of a state as the log would hold it. */
const saved = ({ decider }: Kind, state: unknown) => {
  const json = JSON.stringify(decider.save(state))
  const snapshot: unknown = JSON.parse(json)
  return { snapshot, bytes: json.length }
}

/** Applies events; a message that says why when one of them cannot have happened. */
const folded = ({ decider, decode }: Kind, before: unknown, { commit }: Recorded) =>
  Result.try({
    try: () => commit.events.reduce((state, event) => decider.evolve(state, decode(event)), before),
    catch: (cause) => String(cause).split("\n", 1)[0] ?? "",
  })

/** States are held up to a number of bytes, the last used longest. */
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

/** Checks the snapshots of these kinds of aggregates; of others it says nothing. */
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

  /** The snapshot to compare with: an older machine's in the shape that it has today. */
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
    return { ...fault, expected: shown(snapshot), found: shown(stored) }
  }

  return {
    lacks: (stream) => kindOf(stream) !== undefined && held.get(stream) === undefined,
    begin,
    check,
    folded: () => count,
  }
}
