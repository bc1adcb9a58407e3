/** Run by a test: begins a generation of the log, and is killed after the step with this number. */
import { Effect } from "effect"
import { rollLog } from "#adapters/log/roll.ts"
import { busAlone, generations } from "#server/session.ts"
import { newSteps } from "../../world/server/steps.ts"
import { given } from "../../world/settings-given.ts"

const [, , dir = "", step = ""] = process.argv
const settings = given({ data: { dir } })

const { after, tell } = newSteps(Number(step))

await Effect.runPromise(
  rollLog({ ...generations(settings), after }).pipe(Effect.provide(busAlone(settings))),
)
tell()
