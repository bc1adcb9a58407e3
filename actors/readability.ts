/**
 * Whether this release can read a commit of its aggregates.
 *
 * An envelope may be whole and what is in it nonsense, where somebody published it with the
 * credentials of the bus. Nothing would get past it: it would stop read models, processes and the
 * aggregate itself. A commit of a newer release is another matter: it waits for a process of that
 * release (decision 0148), and is known by the version of its machine.
 *
 * Source: decision 0189.
 */
import { Schema } from "effect"
import type { AnyDecider } from "#actors/decider.ts"
import { type Commit, type Judge, parseStream } from "#events/log.ts"
import { causeText } from "#schemas/cause-text.ts"
import { type Message, typesOf } from "#schemas/message.ts"

/** Longest reason, in characters: a schema explains at length what it does not take. */
const reason_chars_max = 300

type Check = (commit: Commit) => string | undefined

const reasonOf = (what: string, cause: unknown) =>
  `${what}: ${causeText(cause)}`.replaceAll(/[\s\p{Cc}]+/gu, " ").slice(0, reason_chars_max)

const isObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Events: each of a type that this release knows, and of that type's shape. */
const eventsCheck = ({ event }: AnyDecider): Check => {
  const decode = Schema.decodeUnknownSync(event)
  const types = typesOf(event)
  const faultOf = (one: Message) => {
    if (!types.has(one.type)) return `its event ${one.type} is of no type of this aggregate`
    try {
      decode(one)
      return undefined
    } catch (cause) {
      return reasonOf(`its event ${one.type} is of another shape`, cause)
    }
  }
  return ({ events }) => {
    for (const one of events) {
      const fault = faultOf(one)
      if (fault !== undefined) return fault
    }
    return undefined
  }
}

/**
 * A snapshot: a state of its chart and, where it is of this machine, every field of its context.
 * Whether it is what the events make of the one before is for `audit verify`.
 */
const snapshotCheck = (decider: AnyDecider): Check => {
  const { machine, value: initial, context } = decider.save(decider.initialState)
  const fields = isObject(context) ? Object.keys(context) : []
  // A chart has few states.
  const known = new Set<string>([JSON.stringify(initial)])
  return ({ snapshot }) => {
    const is_current = snapshot.machine === machine
    if (is_current) {
      const has = isObject(snapshot.context) ? snapshot.context : {}
      const missing = fields.find((field) => !(field in has))
      if (missing !== undefined) return `its snapshot has no ${missing}`
    }
    const value = JSON.stringify(snapshot.value)
    if (is_current && known.has(value)) return undefined
    try {
      decider.restore(snapshot)
    } catch (cause) {
      return reasonOf("its snapshot is of no state", cause)
    }
    if (is_current) known.add(value)
    return undefined
  }
}

const checkOf = (decider: AnyDecider): Check => {
  const { machine } = decider.save(decider.initialState)
  const events = eventsCheck(decider)
  const snapshot = snapshotCheck(decider)
  return (commit) =>
    commit.snapshot.machine > machine ? undefined : (snapshot(commit) ?? events(commit))
}

/** Judges commits of these kinds; all others pass, since nothing here reads them. */
export const judgeOf = (deciders: ReadonlyArray<AnyDecider>): Judge => {
  const kinds = new Map(deciders.map((decider) => [decider.name, decider]))
  const checks = new Map<string, Check>()
  return (stream, commit) => {
    const { name } = parseStream(stream)
    const known = checks.get(name)
    if (known !== undefined) return known(commit)
    const decider = kinds.get(name)
    if (decider === undefined) return undefined
    const check = checkOf(decider)
    checks.set(name, check)
    return check(commit)
  }
}
