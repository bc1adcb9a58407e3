/** Commits for tests of logs. */
import { Effect, Stream } from "effect"
import { type Append, type Commit, Log, type Recorded } from "#events/log.ts"

/** Runs a test with an empty log of its own. */
export type Test = (name: string, body: Effect.Effect<void, unknown, Log>) => void

export const collect = <A, E>(stream: Stream.Stream<A, E>) =>
  Effect.map(Stream.runCollect(stream), (all) => [...all])

/** Two kinds of stream in one service, and a stream of another service. */
export const a = "test.one.a"
export const b = "test.one.b"
export const c = "test.two.c"
export const d = "other.one.d"

/** An event that carries a test's text. */
export const written = (text: string) => ({ type: "Written", text })

/** A commit of one event; `command` is the command that caused it. */
export const commitOf = (command: string, prev: string, text = command): Commit => ({
  v: 1,
  actor: "test",
  at: "2026-11-20T12:00:00.000Z",
  events: [written(text)],
  snapshot: { machine: 1, value: "open", context: { text } },
  commands: [command],
  prev,
})

/** The text of the commit's only event. */
export const textOf = ({ commit }: Recorded) => (commit.events[0] as { text?: string }).text

/** Appends the first commit of a stream. */
export const first = (stream: string, command = `first of ${stream}`) =>
  Effect.map(
    Log,
    (log): Append => ({ stream, expected: 0, commit: commitOf(command, log.hashOf(stream)) }),
  )

/** Appends a commit after the last one of a stream. */
export const next = (stream: string, command: string) =>
  Effect.gen(function* () {
    const log = yield* Log
    const last = yield* log.load(stream)
    const prev = last?.hash ?? log.hashOf(stream)
    return { stream, expected: last?.position ?? 0, commit: commitOf(command, prev) }
  })

/** Appends to a stream as a command does; returns the position. */
export const write = (stream: string, command: string) =>
  Effect.gen(function* () {
    const log = yield* Log
    const [appended] = yield* log.append([yield* next(stream, command)])
    return appended?.position ?? 0
  })

/** Appends to a stream, and retries version conflicts until it succeeds. */
export const insist = (stream: string, command: string) =>
  Effect.retry(write(stream, command), { while: (error) => error._tag === "VersionConflict" })
