import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { WebhookSecrets } from "#actors/system/webhooks/sender.ts"
import { webhookSecrets } from "#adapters/system/webhook/key.ts"
import { temporaryFolder } from "../../world/programs/nats.ts"
import { given } from "../../world/settings-given.ts"

const secret = Redacted.make("s".repeat(32))

/** The id of the key that a process with these settings has. */
const idIn = (dir: string, change: Parameters<typeof given>[0] = {}) =>
  Effect.map(
    Effect.provide(
      WebhookSecrets,
      Layer.fresh(webhookSecrets(given({ ...change, data: { dir } }))),
    ),
    ({ key_id }) => key_id,
  )

describe("the key of webhooks' secrets", () => {
  it.live("is this data folder's, made once, where nothing is shared", () =>
    Effect.gen(function* () {
      const [one, other] = [yield* temporaryFolder, yield* temporaryFolder]
      const made = yield* idIn(one)
      assert.equal(yield* idIn(one), made)
      assert.notEqual(yield* idIn(other), made)
      assert.match(readFileSync(join(one, "webhook-key"), "utf8"), /^[0-9a-f]{64}\n$/)
    }).pipe(Effect.scoped),
  )

  it.live("is made from the secret of the cluster, alike on every machine, and not kept", () =>
    Effect.gen(function* () {
      const [one, other] = [yield* temporaryFolder, yield* temporaryFolder]
      const shared = { cluster: { secret } }
      const made = yield* idIn(one, shared)
      assert.equal(yield* idIn(other, shared), made)
      assert.notEqual(
        yield* idIn(one, { cluster: { secret: Redacted.make("t".repeat(32)) } }),
        made,
      )
      assert.isFalse(existsSync(join(one, "webhook-key")))
    }).pipe(Effect.scoped),
  )

  it.live("stays what an earlier start made, and gives way to the setting", () =>
    Effect.gen(function* () {
      const dir = yield* temporaryFolder
      const kept = yield* idIn(dir)
      assert.equal(yield* idIn(dir, { cluster: { secret } }), kept)
      const key = { webhooks: { key: Redacted.make("k".repeat(32)) } }
      assert.notEqual(yield* idIn(dir, key), kept)
    }).pipe(Effect.scoped),
  )
})
