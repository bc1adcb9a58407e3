/** Run by a test: restores a backup of state, and is killed after the step with this number. */
import { Effect } from "effect"
import { verifyState } from "#adapters/state/proof.ts"
import { claimFolder, restoreState } from "#adapters/state/restore.ts"
import { openStateStore } from "#adapters/state/store.ts"
import { busRestored, generations } from "#server/session.ts"
import { newSteps } from "../../world/server/steps.ts"
import { given } from "../../world/settings-given.ts"

const [, , dir = "", from = "", step = ""] = process.argv
const settings = given({ data: { dir } })

const { after, tell } = newSteps(Number(step))

await Effect.runPromise(
  Effect.gen(function* () {
    const store = yield* openStateStore(from, { make: false })
    const { manifest } = store
    if (manifest === undefined) throw new Error("There is no manifest.")
    const log = generations(settings)
    yield* verifyState(store, manifest, log)
    yield* claimFolder(dir, manifest)
    const options = { store, manifest, folder: dir, log, after, onProgress: () => Effect.void }
    yield* Effect.provide(restoreState(options), busRestored(settings))
  }),
)
tell()
