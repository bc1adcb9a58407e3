import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { DataFolder } from "#adapters/data-folder/lock.ts"
import { openTokenStore } from "#adapters/identity/token-store.ts"
import { NatsServer } from "#bus"
import { worker } from "#server/roles/agent.ts"
import { embedded } from "#server/share-protection/embedded.ts"
import { ownTokens } from "../world/authenticate.ts"
import { settingsWith } from "../world/http.ts"
import { describeNats } from "../world/programs/nats.ts"
import { until } from "../world/server/server.ts"

const soon_ms = 20_000

describeNats("a process that is a worker", (it) => {
  it.effect("reports why it does not work, also after a defect", () =>
    Effect.gen(function* () {
      const { core, servers } = yield* NatsServer
      const { path } = yield* DataFolder
      const { user = "", password = Redacted.make("") } = core
      const nats = { user, password }
      const shares = { root: join(path, "shares") }
      const settings = settingsWith({ data: { dir: path }, nats, shares })
      const of_events = { url: servers.join(","), user, password: Redacted.value(password) }
      yield* embedded(settings, ownTokens(yield* openTokenStore(path)), of_events)
      // Its engine folder cannot be created.
      writeFileSync(join(path, "engine"), "")
      const { ready } = yield* worker(settings, { config: "", set: [] })
      const why = yield* Effect.promise(() =>
        until("why it does not work", soon_ms, () => Effect.runPromise(ready)),
      )
      assert.match(why, /^cannot run jobs: /)
    }).pipe(Effect.scoped),
  )
})
