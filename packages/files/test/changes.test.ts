import { chmodSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { temporaryFolder } from "../../../test/world/programs/nats.ts"
import { watchFiles } from "../changes.ts"

it.live("a file whose permissions alone are fixed is read again", () =>
  Effect.gen(function* () {
    const path = join(yield* temporaryFolder, "key.pem")
    writeFileSync(path, "text", { mode: 0o000 })
    const whenChanged = yield* watchFiles([path])
    const changed = yield* Deferred.make<void>()
    yield* whenChanged(Effect.asVoid(Deferred.succeed(changed, undefined)))
    chmodSync(path, 0o600)
    yield* Effect.timeout(Deferred.await(changed), "10 seconds")
  }).pipe(Effect.scoped),
)
