/**
 * The timer: sends aggregates the commands that they scheduled for themselves.
 *
 * Timers are derived from the log: they fire even if no request loads the aggregate, and those that
 * expired while no process ran fire at the next startup.
 */
import { DateTime, Effect } from "effect"
import { Agenda } from "#actors/agenda.ts"
import type { AnyDecider } from "#actors/decider.ts"
import { stateAfter } from "#actors/host.ts"
import type { Caused, Process } from "#actors/process.ts"
import { Log, parseStream } from "#events/log.ts"

/** The timer of these kinds of aggregates, which all belong to `service`. */
export const timer = (service: string, deciders: ReadonlyArray<AnyDecider>): Process => ({
  name: `${service}-timer`,
  // With a single kind, read only its own commits.
  part: deciders.length === 1 ? (deciders[0]?.name ?? service) : service,
  from: "lasts",
  start: Effect.gen(function* () {
    const log = yield* Log
    const kinds = new Map(deciders.map((decider) => [decider.name, decider]))
    const agenda = Agenda.make<Caused>()

    return {
      fold: Effect.fnUntraced(function* (recorded) {
        const { name, id } = parseStream(recorded.stream)
        const to = kinds.get(name)
        if (to === undefined) return
        const state = yield* stateAfter(log, to, recorded)
        const entries = to.timers(state).map(({ name, due, command }) => ({
          at: DateTime.toEpochMillis(DateTime.makeUnsafe(due)),
          item: {
            command_id: `timer-${recorded.stream}-${name}-${due}`,
            cause: String(recorded.position),
            batch: [{ to, id, command }],
          },
        }))
        agenda.set(recorded.stream, entries)
      }),
      due: (now) => agenda.due(now),
    }
  }),
})
