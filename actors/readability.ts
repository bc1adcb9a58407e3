/**
 * Checks that this release can read the commits of its aggregates.
 *
 * A client with the credentials of the bus may publish a valid envelope with invalid content. Such
 * a commit would stop read models, processes and its aggregate. A commit of a newer release is not
 * invalid: it waits for a process of that release (decision 0148), and has a newer machine version.
 *
 * Source: decision 0189.
 */
import { Schema } from "effect"
import type { AnyDecider } from "#actors/decider.ts"
import { type Commit, type Judge, parseStream } from "#events/log.ts"
import { causeText } from "#schemas/cause-text.ts"
import { type Message, typesOf } from "#schemas/message.ts"

/** Longest reason, in characters: schema errors are long. */
const reason_chars_max = 300

type Check = (commit: Commit) => string | undefined

const reasonOf = (what: string, cause: unknown) =>
  `${what}: ${causeText(cause)}`.replaceAll(/[\s\p{Cc}]+/gu, " ").slice(0, reason_chars_max)

const isObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Checks that each event has a known type and matches its schema. */
const eventsCheck = ({ event }: AnyDecider): Check => {
  const decode = Schema.decodeUnknownSync(event)
  const types = typesOf(event)
  const faultOf = (one: Message) => {
    if (!types.has(one.type))
      return `its event ${one.type} has a type that this aggregate does not have`
    try {
      decode(one)
      return undefined
    } catch (cause) {
      return reasonOf(`its event ${one.type} does not match its schema`, cause)
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
 * Checks that a snapshot is a state of its chart and, if it has the current machine version, has
 * every field of its context. `audit verify` checks it against the events.
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
      return reasonOf("its snapshot has an unknown state", cause)
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

/** Judges commits of these kinds; all others pass, because this program does not read them. */
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
