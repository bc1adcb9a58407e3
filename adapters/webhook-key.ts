/**
 * Webhooks' secrets, made from one key: none of them is kept anywhere, so that none can leak from
 * the log, a table or a backup of them.
 */
import { createHash, createHmac, randomBytes } from "node:crypto"
import { join } from "node:path"
import { Effect, Layer, Option, Redacted, Schema } from "effect"
import { WebhookSecrets } from "#actors/system/webhook-sender.ts"
import { findBounded, writePrivate } from "#adapters/private-file.ts"
import { secretText } from "#adapters/webhook-signature.ts"
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

/** The key in `webhook-key`, made at the first start. */
const keptKey = Effect.fnUntraced(function* (data_dir: string) {
  const path = join(data_dir, "webhook-key")
  const kept = yield* findBounded(path, file_bytes_max)
  if (Option.isSome(kept)) {
    const text = kept.value.trim()
    if (/^[0-9a-f]{64}$/.test(text)) return Buffer.from(text, "hex")
    return yield* new WebhookKeyDamaged({ message: `${path} is damaged: put its copy back.` })
  }
  const made = randomBytes(key_bytes)
  yield* writePrivate(path, `${made.toString("hex")}\n`)
  return made
})

/** The secrets of `webhooks.key` or, without one, of the data folder's key. */
export const webhookSecrets = ({ webhooks, data }: Settings) =>
  Layer.effect(
    WebhookSecrets,
    Effect.gen(function* () {
      const given = Redacted.value(webhooks.key)
      return secretsWith(given === "" ? yield* keptKey(data.dir) : Buffer.from(given))
    }),
  )
