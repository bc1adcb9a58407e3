/** A read model of share protection in its own folder, and commits to fill it with. */
import { Effect, Layer } from "effect"
import type { Recorded } from "#events/log.ts"
import type { Databases } from "#projections/database.ts"
import { openDatabase, project } from "#projections/read-model.ts"
import { blueprint } from "#projections/share-protection/blueprint.ts"
import type { Message } from "#schemas/message.ts"
import { sqlite } from "#sqlite"
import { temporaryFolder } from "../programs/nats.ts"

const noon_ms = Date.parse("2026-11-20T12:00:00.000Z")

/** A timestamp, in seconds after noon. */
export const second = (s: number) => new Date(noon_ms + s * 1000).toISOString()

/** A commit to `share-protection.<stream>`. */
export const recorded = (
  position: number,
  stream: string,
  at: string,
  events: ReadonlyArray<Message>,
): Recorded => ({
  position,
  stream: `share-protection.${stream}`,
  hash: "",
  commit: {
    v: 1,
    actor: "test",
    at,
    events,
    commands: ["c"],
    prev: "",
    snapshot: { machine: 1, value: "", context: {} },
  },
})

/** An event as stored in the log. */
interface Told extends Message {
  readonly [field: string]: unknown
}

/** An empty read model in one of these databases, which applies commits immediately. */
const modelIn = Effect.fnUntraced(function* <R>(databases: Layer.Layer<Databases, never, R>) {
  const around = yield* Layer.build(databases)
  const database = yield* Effect.provideContext(openDatabase(blueprint), around)
  let position = 0
  return {
    ...database,
    /** One commit, at this number of seconds after noon. */
    tell: (stream: string, at_s: number, ...events: ReadonlyArray<Told>) =>
      project(database, blueprint, [recorded(++position, stream, second(at_s), events)]),
    tellAll: (commits: ReadonlyArray<Recorded>) => project(database, blueprint, commits),
  }
})

export const emptyModel = Effect.flatMap(temporaryFolder, (folder) => modelIn(sqlite(folder)))
