import { chmodSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { temporaryFolder } from "../../../test/world/programs/nats.ts"
import { watched } from "../changes.ts"

it.live("a file whose rights alone are mended is looked at again", () =>
  Effect.gen(function* () {
    const path = join(yield* temporaryFolder, "key.pem")
    writeFileSync(path, "text", { mode: 0o000 })
    const whenChanged = yield* watched([path])
    const heard = yield* Deferred.make<void>()
    yield* whenChanged(Effect.asVoid(Deferred.succeed(heard, undefined)))
    chmodSync(path, 0o600)
    yield* Effect.timeout(Deferred.await(heard), "10 seconds")
  }).pipe(Effect.scoped),
)
