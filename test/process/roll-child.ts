/** Run by a test: begins a generation of the log, and is killed after its step of this number. */
import { Effect } from "effect"
import { rollLog } from "#adapters/log-roll.ts"
import { busAlone, generations } from "#verbs/session.ts"
import { given } from "../settings-given.ts"

const [, , dir = "", step = ""] = process.argv
const settings = given({ data: { dir } })

let seen = 0
const after = () =>
  Effect.sync(() => {
    if (++seen === Number(step)) process.kill(process.pid, "SIGKILL")
  })

await Effect.runPromise(
  rollLog({ ...generations(settings), after }).pipe(Effect.provide(busAlone(settings))),
)
process.stdout.write(`steps ${seen}\n`)
