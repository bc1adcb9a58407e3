/**
 * Webhooks' secrets, made from one key: none of them is kept anywhere, so that none can leak from
 * the log, a table or a backup of them.
 */
import { createHash, createHmac, randomBytes } from "node:crypto"
import { join } from "node:path"
import { Effect, Layer, Option, Redacted, Schema } from "effect"
import { WebhookSecrets } from "#actors/system/webhooks/sender.ts"
import { sharedKey } from "#adapters/identity/shared-key.ts"
import { secretText } from "#adapters/system/webhook/signature.ts"
import { findBounded, writePrivate } from "#files"
import type { Settings } from "#schemas/settings.ts"

/** SHA-256's own width: HMAC gains nothing from a longer key. */
const key_bytes = 32
/** The key in hex with its line end, and room to see that a file holds more than that. */
const file_bytes_max = 4 * key_bytes
/** Hex digits by which the log names a key. */
const id_digits = 16

/** The key's file is damaged. Another key would sign what no receiver takes. */
export class WebhookKeyDamaged extends Schema.TaggedError<WebhookKeyDamaged>()(
  "WebhookKeyDamaged",
  { message: Schema.String },
) {}

/** Secrets of this key. */
export const secretsWith = (key: Uint8Array): WebhookSecrets["Service"] => ({
  key_id: createHash("sha256")
    .update("webhook-key\0")
    .update(key)
    .digest("hex")
    .slice(0, id_digits),
  reveal: (webhook_id, version) => {
    const name = `webhook-secret\0${webhook_id}\0${version}`
    return Redacted.make(secretText(createHmac("sha256", key).update(name).digest()))
  },
})

/** The key in `webhook-key`; undefined where there is no such file. */
const keptKey = Effect.fnUntraced(function* (data_dir: string) {
  const path = keyPath(data_dir)
  const kept = yield* findBounded(path, file_bytes_max)
  if (Option.isNone(kept)) return undefined
  const text = kept.value.trim()
  if (/^[0-9a-f]{64}$/.test(text)) return Buffer.from(text, "hex")
  return yield* new WebhookKeyDamaged({ message: `${path} is damaged: put its copy back.` })
})

/** A new key for `webhook-key`, at the first start. */
const madeKey = Effect.fnUntraced(function* (data_dir: string) {
  const made = randomBytes(key_bytes)
  yield* writePrivate(keyPath(data_dir), `${made.toString("hex")}\n`)
  return made
})

const keyPath = (data_dir: string) => join(data_dir, "webhook-key")

/**
 * The secrets of `webhooks.key`; without one, of the data folder's key, which an older start has
 * made; else of the key that processes with one `cluster.secret` have alike.
 */
export const webhookSecrets = ({ webhooks, data, cluster }: Settings) =>
  Layer.effect(
    WebhookSecrets,
    Effect.gen(function* () {
      const given = Redacted.value(webhooks.key)
      if (given !== "") return secretsWith(Buffer.from(given))
      const kept = yield* keptKey(data.dir)
      const shared = sharedKey(cluster.secret, "webhook")
      if (kept !== undefined && shared !== undefined) {
        const told = `Webhooks are signed with ${keyPath(data.dir)}, of this folder alone.`
        yield* Effect.logWarning(`${told} Set webhooks.key where other processes sign too.`)
      }
      return secretsWith(kept ?? shared ?? (yield* madeKey(data.dir)))
    }),
  )
