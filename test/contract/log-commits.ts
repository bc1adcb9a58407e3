/** Commits for the tests of logs. */
import { Effect, Stream } from "effect"
import { type Append, type Commit, Log, type Recorded } from "#events/log.ts"

/** Runs a test over a log that is empty and its own. */
export type Test = (name: string, body: Effect.Effect<void, unknown, Log>) => void

export const collect = <A, E>(stream: Stream.Stream<A, E>) =>
  Effect.map(Stream.runCollect(stream), (all) => [...all])

/** Streams of two kinds of one service, and of another service. */
export const a = "test.one.a"
export const b = "test.one.b"
export const c = "test.two.c"
export const d = "other.one.d"

/** An event whose text is whatever a test looks for. */
export const written = (text: string) => ({ type: "Written", text })

/** A commit of one event; `command` names the command that it did. */
export const commitOf = (command: string, prev: string, text = command): Commit => ({
  v: 1,
  actor: "test",
  at: "2026-11-20T12:00:00.000Z",
  events: [written(text)],
  snapshot: { machine: 1, value: "open", context: { text } },
  commands: [command],
  prev,
})

/** The text of a commit's one event. */
export const textOf = ({ commit }: Recorded) => (commit.events[0] as { text?: string }).text

/** The first commit of a stream. */
export const first = (stream: string, command = `first of ${stream}`) =>
  Effect.map(
    Log,
    (log): Append => ({ stream, expected: 0, commit: commitOf(command, log.hashOf(stream)) }),
  )

/** A commit after the last one of a stream. */
export const next = (stream: string, command: string) =>
  Effect.gen(function* () {
    const log = yield* Log
    const last = yield* log.load(stream)
    const prev = last?.hash ?? log.hashOf(stream)
    return { stream, expected: last?.position ?? 0, commit: commitOf(command, prev) }
  })

/** Writes to a stream as one command does; answers the position. */
export const write = (stream: string, command: string) =>
  Effect.gen(function* () {
    const log = yield* Log
    const [appended] = yield* log.append([yield* next(stream, command)])
    return appended?.position ?? 0
  })

/** Writes to a stream as often as others let it, until it is written. */
export const insist = (stream: string, command: string) =>
  Effect.retry(write(stream, command), { while: (error) => error._tag === "VersionConflict" })
