/** The installation's signing key: an Ed25519 key that never leaves the data folder. */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomUUID,
  sign,
} from "node:crypto"
import { constants } from "node:fs"
import { link, open, rm } from "node:fs/promises"
import { dirname, join } from "node:path"
import { Effect, Layer, Option, Schema } from "effect"
import { type Head, Notary } from "#actors/system/notary.ts"
import { findBounded, makeFolder, syncFolder } from "#files"
import type { AuditKey } from "#schemas/system/audit.ts"

/**
 * The key file cannot be created or is invalid. It is never replaced: that would change the log.
 */
export class KeyUnusable extends Schema.TaggedError<KeyUnusable>()("KeyUnusable", {
  message: Schema.String,
}) {}

/** An Ed25519 key in PEM has 119 bytes. */
const file_bytes_max = 1024

/** The algorithm's number in a signed note, and the length of a key id. */
const ed25519_type = Uint8Array.of(1)
const id_bytes = 4

/** The last 32 bytes of an Ed25519 public key in DER are the raw key. */
const raw_bytes = 32

/** Path of the key file. */
export const notaryKeyPath = (data_dir: string) => join(data_dir, "audit-key.pem")

/** Signs with this key. */
export const notaryWith = (secret: KeyObject): Notary["Service"] => {
  const public_key = createPublicKey(secret)
  const raw = public_key.export({ type: "spki", format: "der" }).subarray(-raw_bytes)
  const typed_key = Buffer.concat([ed25519_type, raw])
  const name = `almanac-log/${createHash("sha256").update(raw).digest("hex").slice(0, 16)}`
  const id = createHash("sha256")
    .update(`${name}\n`)
    .update(typed_key)
    .digest()
    .subarray(0, id_bytes)
  const key: AuditKey = {
    name,
    verifier: `${name}+${id.toString("hex")}+${typed_key.toString("base64")}`,
    public_key: public_key.export({ type: "spki", format: "pem" }).toString(),
  }
  return {
    key,
    sign: ({ size, root }: Head) => {
      const text = `${name}\n${size}\n${Buffer.from(root).toString("base64")}\n`
      const signature = Buffer.concat([id, sign(null, Buffer.from(text), secret)])
      return `${text}\n\u2014 ${name} ${signature.toString("base64")}\n`
    },
    hashing: () => {
      const hash = createHash("sha256")
      return { add: (text) => void hash.update(text), end: () => hash.digest("hex") }
    },
  }
}

/** Creates the file exclusively, so that two concurrent starts agree on one key. */
const writeOnce = async (path: string, text: string) => {
  makeFolder(dirname(path), 0o700)
  const partial = `${path}.${randomUUID()}.tmp`
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL
  const file = await open(partial, flags, 0o600)
  try {
    await file.writeFile(text)
    await file.sync()
    await link(partial, path)
  } catch (cause) {
    const exists = cause instanceof Error && "code" in cause && cause.code === "EEXIST"
    if (!exists) throw cause
  } finally {
    await file.close()
    await rm(partial, { force: true })
  }
  await syncFolder(dirname(path))
}

const readKey = Effect.fnUntraced(function* (path: string) {
  const text = yield* findBounded(path, file_bytes_max).pipe(
    Effect.mapError(({ message }) => new KeyUnusable({ message })),
  )
  if (Option.isNone(text)) return undefined
  return yield* Effect.try({
    try: () => {
      const key = createPrivateKey(text.value)
      if (key.asymmetricKeyType !== "ed25519") throw new Error("it is another type of key")
      return key
    },
    // The parser's message could leak parts of the key.
    catch: () =>
      new KeyUnusable({ message: `${path} is not an Ed25519 key: restore the original key.` }),
  })
})

/** The key at `path`, created if missing. */
const storedKey = Effect.fnUntraced(function* (path: string) {
  const existing = yield* readKey(path)
  if (existing !== undefined) return existing
  const { privateKey } = generateKeyPairSync("ed25519")
  const writing = Effect.tryPromise({
    try: () => writeOnce(path, privateKey.export({ type: "pkcs8", format: "pem" }).toString()),
    catch: () => new KeyUnusable({ message: `${path} cannot be written.` }),
  })
  // Uninterruptible, so that a shutdown does not leave a partial key file.
  yield* Effect.uninterruptible(writing)
  const created = yield* readKey(path)
  return created ?? (yield* new KeyUnusable({ message: `${path} is missing.` }))
})

/** A configured key file is never created here: two machines would create different keys. */
const configuredKey = Effect.fnUntraced(function* (path: string) {
  const key = yield* readKey(path)
  return key ?? (yield* new KeyUnusable({ message: `audit.key_file: ${path} does not exist.` }))
})

/**
 * The notary of this data folder, whose key is created (mode 0600) if missing; or that of
 * `key_file`, for processes that share a log and a key.
 */
export const notary = (data_dir: string, key_file = "") =>
  Layer.effect(
    Notary,
    Effect.map(
      key_file === "" ? storedKey(notaryKeyPath(data_dir)) : configuredKey(key_file),
      notaryWith,
    ),
  )
