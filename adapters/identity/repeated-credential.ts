/**
 * Credentials created by requests with an Idempotency-Key: derived from a key of this server and
 * the command's id, so that a retry gets the same credential and it is never stored in plain text.
 * Source: decision 0180.
 */
import { createHmac, randomBytes } from "node:crypto"
import { join } from "node:path"
import { Effect, Option } from "effect"
import { v4 } from "uuid"
import { sharedKey } from "#adapters/identity/shared-key.ts"
import { findBounded, writePrivate } from "#files"
import { IdentityUnavailable, type Repeatable } from "#gateway/identity.ts"
import type { Settings } from "#schemas/settings.ts"

/** The length of SHA-256: HMAC gains nothing from a longer key. */
const key_bytes = 32
/** The key in hex with a line feed, plus room to detect a longer file. */
const file_bytes_max = 4 * key_bytes

/** The key was used by a different request, whose credential must not be returned. */
export const key_reused = new IdentityUnavailable({
  message: "The Idempotency-Key was already used by a request with another body.",
  is_reused: true,
})

/** 256 bits for this command and purpose; undefined if the command cannot be retried. */
export const derivedBytes = (
  key: Uint8Array,
  purpose: "token" | "trust" | "secret",
  { command_id, fingerprint }: Partial<Repeatable> = {},
): Buffer | undefined =>
  command_id === undefined || fingerprint === undefined
    ? undefined
    : createHmac("sha256", key).update(`repeated-${purpose}\0${command_id}`).digest()

/** Like `derivedBytes`, as a UUID. */
export const derivedId = (...args: Parameters<typeof derivedBytes>): string | undefined => {
  const random = derivedBytes(...args)
  return random && v4({ random })
}

/**
 * The key for tokens: derived from `cluster.secret`, which all processes share, or else from the
 * file `identity/retry-key` in the data folder, which is created if missing.
 */
export const retryKey = Effect.fnUntraced(function* ({
  data,
  cluster,
}: Pick<Settings, "data" | "cluster">) {
  const shared = sharedKey(cluster.secret, "retried-token")
  if (shared !== undefined) return shared
  const path = join(data.dir, "identity", "retry-key")
  const stored = yield* findBounded(path, file_bytes_max)
  if (Option.isSome(stored)) {
    const hex = stored.value.trim()
    if (/^[0-9a-f]{64}$/.test(hex)) return Buffer.from(hex, "hex")
    const message = `${path} is damaged: delete it; retries of older requests then fail`
    return yield* new IdentityUnavailable({ message })
  }
  const key = randomBytes(key_bytes)
  yield* writePrivate(path, `${key.toString("hex")}\n`)
  return key
})
