/**
 * Webhooks' secrets, derived from one key. They are not stored, so they cannot leak from the log, a
 * table or a backup.
 */
import { createHash, createHmac, randomBytes } from "node:crypto"
import { join } from "node:path"
import { Effect, Layer, Option, Redacted, Schema } from "effect"
import { WebhookSecrets } from "#actors/system/webhooks/sender.ts"
import { sharedKey } from "#adapters/identity/shared-key.ts"
import { secretText } from "#adapters/system/webhook/signature.ts"
import { findBounded, writePrivate } from "#files"
import type { Settings } from "#schemas/settings.ts"

/** The length of SHA-256: HMAC gains nothing from a longer key. */
const key_bytes = 32
/** The key in hex with a line feed, plus room to detect a longer file. */
const file_bytes_max = 4 * key_bytes
/** Hex digits of a key id in the log. */
const id_digits = 16

/** The key's file is damaged. Receivers would reject signatures of a new key. */
export class WebhookKeyDamaged extends Schema.TaggedError<WebhookKeyDamaged>()(
  "WebhookKeyDamaged",
  { message: Schema.String },
) {}

/** Secrets derived from this key. */
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

/** The key in `webhook-key`; undefined if the file does not exist. */
const storedKey = Effect.fnUntraced(function* (data_dir: string) {
  const path = keyPath(data_dir)
  const stored = yield* findBounded(path, file_bytes_max)
  if (Option.isNone(stored)) return undefined
  const text = stored.value.trim()
  if (/^[0-9a-f]{64}$/.test(text)) return Buffer.from(text, "hex")
  return yield* new WebhookKeyDamaged({ message: `${path} is damaged: restore it from a backup.` })
})

/** Creates `webhook-key` at the first start. */
const createKey = Effect.fnUntraced(function* (data_dir: string) {
  const key = randomBytes(key_bytes)
  yield* writePrivate(keyPath(data_dir), `${key.toString("hex")}\n`)
  return key
})

const keyPath = (data_dir: string) => join(data_dir, "webhook-key")

/**
 * The secrets of `webhooks.key`; without it, those of an existing key file in the data folder; else
 * those of the key derived from `cluster.secret`.
 */
export const webhookSecrets = ({ webhooks, data, cluster }: Settings) =>
  Layer.effect(
    WebhookSecrets,
    Effect.gen(function* () {
      const configured = Redacted.value(webhooks.key)
      if (configured !== "") return secretsWith(Buffer.from(configured))
      const stored = yield* storedKey(data.dir)
      const shared = sharedKey(cluster.secret, "webhook")
      if (stored !== undefined && shared !== undefined) {
        const notice =
          `Webhooks are signed with ${keyPath(data.dir)}, which exists only in this data ` +
          `folder.`
        yield* Effect.logWarning(`${notice} If other processes also sign, set webhooks.key.`)
      }
      return secretsWith(stored ?? shared ?? (yield* createKey(data.dir)))
    }),
  )
