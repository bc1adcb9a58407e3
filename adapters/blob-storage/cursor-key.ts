/**
 * Authenticates list cursors with a key derived from the cluster's secret, or else with this node's
 * own key in the data folder. Source: decision 0140.
 */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto"
import { join } from "node:path"
import { Effect, Layer, Option, Redacted } from "effect"
import { sharedKey } from "#adapters/identity/shared-key.ts"
import { findBounded, writePrivate } from "#files"
import { Cursors } from "#gateway/blob-storage/cursors.ts"

/** The length of SHA-256: HMAC gains nothing from a longer key. */
const key_bytes = 32
/** Half of an HMAC-SHA256: a forgery takes 2^128 attempts. */
const tag_bytes = 16
/** Read limit, above the length of a key in hex with its newline. */
const file_bytes_max = 4 * key_bytes

const hex_key = /^[0-9a-f]{64}$/

/** Seals cursors with this key. Modified cursors, and those of another key, do not open. */
export const cursorsWith = (key: Uint8Array): Cursors["Service"] => {
  const tagOf = (payload: Uint8Array) =>
    createHmac("sha256", key)
      .update("list-cursor\0")
      .update(payload)
      .digest()
      .subarray(0, tag_bytes)
  return {
    seal: (payload) => {
      const bytes = Buffer.from(payload)
      return Buffer.concat([tagOf(bytes), bytes]).toString("base64")
    },
    open: (cursor) => {
      // An unescaped plus in a query arrives as a space.
      const text = cursor.replaceAll(" ", "+").replaceAll("-", "+").replaceAll("_", "/")
      const bytes = Buffer.from(text, "base64")
      const is_exact = bytes.toString("base64").replace(/=+$/, "") === text.replace(/=+$/, "")
      if (!is_exact || bytes.length < tag_bytes) return undefined
      const payload = bytes.subarray(tag_bytes)
      const is_ours = timingSafeEqual(tagOf(payload), bytes.subarray(0, tag_bytes))
      return is_ours ? payload.toString() : undefined
    },
  }
}

/**
 * Reads the key in `cursor-key`, or creates it at the first start. A damaged key is logged and
 * replaced.
 */
const cursorKey = Effect.fnUntraced(function* (data_dir: string) {
  const path = join(data_dir, "cursor-key")
  const stored = yield* findBounded(path, file_bytes_max).pipe(
    Effect.catchIf(
      ({ code }) => code === "TOO_LARGE",
      () => Effect.succeed(Option.some("")),
    ),
  )
  if (Option.isSome(stored)) {
    const text = stored.value.trim()
    if (hex_key.test(text)) return Buffer.from(text, "hex")
    yield* Effect.logWarning(
      `${path} is damaged: creating a new key. Older cursors become invalid.`,
    )
  }
  const key = randomBytes(key_bytes)
  yield* writePrivate(path, `${key.toString("hex")}\n`)
  return key
})

/**
 * Cursors that survive a restart. With a cluster secret, every node opens the cursors of all nodes.
 */
export const cursors = (data_dir: string, secret: Redacted.Redacted = no_secret) =>
  Layer.effect(
    Cursors,
    Effect.suspend(() => {
      const shared = sharedKey(secret, "list-cursor")
      return shared === undefined ? cursorKey(data_dir) : Effect.succeed(shared)
    }).pipe(Effect.map(cursorsWith)),
  )

const no_secret = Redacted.make("")
