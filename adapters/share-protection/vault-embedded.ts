/**
 * The embedded secrets manager: one file per secret, encrypted with AES-256-GCM under a key stored
 * next to them. A secret belongs to a project and is read only through that project's trusts.
 *
 * Source: DECISIONS, document 2, identity, secrets, shares.
 */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto"
import { readdir } from "node:fs/promises"
import { join } from "node:path"
import { Clock, Effect, Layer, Option, Redacted, Schema, Semaphore } from "effect"
import { v7 } from "uuid"
import { secret_denied, secretIdOf, Vault } from "#actors/share-protection/ports/vault.ts"
import { derivedId, key_reused } from "#adapters/identity/repeated-credential.ts"
import { unavailable } from "#adapters/identity/token-store.ts"
import type { Inspect } from "#adapters/share-protection/trusts-embedded.ts"
import { type FileFailure, findBounded, removeFile, writePrivate } from "#files"
import { IdentityUnavailable, SecretKeeper } from "#gateway/identity.ts"
import { secret_bytes_max } from "#schemas/secret.ts"
import { BackendUnavailable, TrustAccessDenied } from "#schemas/share-protection/rejection.ts"

/** An href cannot be fetched (RFC 2606): only its UUID is used. */
const base = "https://vault.embedded.invalid"

/** AES-256. */
const key_bytes = 32
/** NIST SP 800-38D: 96 bits, random, for up to 2^32 secrets. */
const nonce_bytes = 12
/** In bytes; a shorter tag is easier to forge. */
const authTagLength = 16
/** An encrypted secret in base64 with its name, plus room to detect a longer file. */
const file_bytes_max = 2 * secret_bytes_max + 4096
/** The key in hex with a line feed, plus room to detect a longer file. */
const key_file_bytes_max = 4 * key_bytes

const Sealed = Schema.fromJsonString(
  Schema.Struct({
    version: Schema.Literal(1),
    project_id: Schema.String,
    name: Schema.String,
    created_at: Schema.Int,
    /** All in base64: nonce, tag and ciphertext. */
    nonce: Schema.String,
    tag: Schema.String,
    payload: Schema.String,
  }),
)
type Sealed = typeof Sealed.Type

/** A secret to store. */
export interface NewSecret {
  readonly project_id: string
  readonly name: string
  readonly payload: Uint8Array
}

/** A vault's folder and its key. */
export interface VaultFiles {
  readonly folder: string
  readonly key: Uint8Array
}

/** Vault and SecretKeeper over these files, for callers with a token that `inspect` accepts. */
export const vaultEmbedded = (files: VaultFiles, inspect: Inspect) =>
  Layer.mergeAll(
    Layer.succeed(Vault, vaultOf(files, inspect)),
    Layer.succeed(SecretKeeper, secretKeeper(files)),
  )

/**
 * Opens `vault` in the data folder, and creates the key if there are no secrets yet. Fails if the
 * key is damaged, or missing while there are secrets, because they cannot be decrypted without it.
 */
export const openVault = Effect.fnUntraced(function* (data_dir: string) {
  const folder = join(data_dir, "vault", "secrets")
  const path = join(data_dir, "vault", "key")
  const text = yield* Effect.mapError(findBounded(path, key_file_bytes_max), unavailable)
  if (Option.isSome(text)) {
    const hex = text.value.trim()
    if (!/^[0-9a-f]{64}$/.test(hex)) return yield* keyFailure(`${path} is damaged`)
    const vault: VaultFiles = { folder, key: Buffer.from(hex, "hex") }
    return vault
  }
  const ids = yield* Effect.promise(() => listIds(folder))
  if (ids.length > 0) return yield* keyFailure(`${path} is missing`)
  const key = randomBytes(key_bytes)
  yield* Effect.mapError(writePrivate(path, `${key.toString("hex")}\n`), unavailable)
  const new_vault: VaultFiles = { folder, key }
  return new_vault
})

/** Empty if the folder does not exist; skips unfinished files. */
const listIds = async (folder: string): Promise<ReadonlyArray<string>> =>
  (await readdir(folder).catch(() => [])).filter((name) => !name.endsWith(".tmp"))

const hrefOf = (id: string) => `${base}/v1/secrets/${id}`

const keyFailure = (problem: string) =>
  Effect.fail(
    new IdentityUnavailable({ message: `${problem}: secrets cannot be decrypted without it` }),
  )

/** Authenticated data: prevents undetected changes of a file's name, project or secret name. */
const associatedData = (id: string, { project_id, name }: Pick<Sealed, "project_id" | "name">) =>
  Buffer.from(JSON.stringify([id, project_id, name]))

/** Stores a secret and returns its href; durable when it completes. */
export const storeSecret = Effect.fnUntraced(function* (
  { folder, key }: VaultFiles,
  { project_id, name, payload }: NewSecret,
  id: string = v7(),
) {
  const nonce = randomBytes(nonce_bytes)
  const cipher = createCipheriv("aes-256-gcm", key, nonce, { authTagLength })
  cipher.setAAD(associatedData(id, { project_id, name }))
  const ciphertext = Buffer.concat([cipher.update(payload), cipher.final()])
  const file = Schema.encodeSync(Sealed)({
    version: 1,
    project_id,
    name,
    created_at: yield* Clock.currentTimeMillis,
    nonce: nonce.toString("base64"),
    tag: cipher.getAuthTag().toString("base64"),
    payload: ciphertext.toString("base64"),
  })
  yield* writePrivate(join(folder, id), file)
  return hrefOf(id)
})

const damaged = (id: string) => new BackendUnavailable({ detail: `Secret ${id} is damaged.` })

const backend = ({ message }: FileFailure) => new BackendUnavailable({ detail: message })

const denied = Effect.fail(new TrustAccessDenied({ detail: secret_denied }))

const findSecret = Effect.fnUntraced(function* ({ folder }: VaultFiles, id: string) {
  const text = yield* Effect.mapError(findBounded(join(folder, id), file_bytes_max), backend)
  if (Option.isNone(text)) return undefined
  return yield* Effect.mapError(Schema.decodeUnknownEffect(Sealed)(text.value), () => damaged(id))
})

const decryptSecret = ({ key }: VaultFiles, id: string, sealed: Sealed) =>
  Effect.try({
    try: () => {
      const nonce = Buffer.from(sealed.nonce, "base64")
      const decipher = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength })
      decipher.setAAD(associatedData(id, sealed)).setAuthTag(Buffer.from(sealed.tag, "base64"))
      const payload = Buffer.from(sealed.payload, "base64")
      return Buffer.concat([decipher.update(payload), decipher.final()])
    },
    catch: () => damaged(id),
  })

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

const asIdentityFailure = ({ detail }: BackendUnavailable) => unavailable({ message: detail })

const vaultOf = (files: VaultFiles, inspect: Inspect): Vault["Service"] => ({
  read: Effect.fnUntraced(function* (by, href) {
    const project_id = yield* inspect(by)
    const id = secretIdOf(href)
    const sealed = id === undefined ? undefined : yield* findSecret(files, id)
    if (id === undefined || sealed?.project_id !== project_id) return yield* denied
    const payload = yield* decryptSecret(files, id, sealed)
    return yield* Effect.catch(
      Effect.try(() => Redacted.make(utf8.decode(payload))),
      () => denied,
    )
  }),
  store: Effect.fnUntraced(function* (by, { name, payload }) {
    const project_id = yield* inspect(by)
    const bytes = Buffer.from(Redacted.value(payload))
    return yield* Effect.mapError(storeSecret(files, { project_id, name, payload: bytes }), backend)
  }),
  find: Effect.fnUntraced(function* (by, name) {
    const project_id = yield* inspect(by)
    let newest: { readonly id: string; readonly created_at: number } | undefined
    // Not every id begins with a timestamp: those of retryable requests are derived.
    for (const id of (yield* Effect.promise(() => listIds(files.folder))).toSorted()) {
      const sealed = yield* findSecret(files, id)
      if (sealed?.project_id !== project_id || sealed.name !== name) continue
      const { created_at } = sealed
      if (newest === undefined || created_at >= newest.created_at) newest = { id, created_at }
    }
    return newest && hrefOf(newest.id)
  }),
  remove: Effect.fnUntraced(function* (by, href) {
    const project_id = yield* inspect(by)
    const id = secretIdOf(href)
    if (id === undefined) return yield* denied
    const sealed = yield* findSecret(files, id)
    if (sealed === undefined) return
    if (sealed.project_id !== project_id) return yield* denied
    yield* Effect.mapError(removeFile(join(files.folder, id)), backend)
  }),
})

/** Stores secrets for an operator. See the port. */
export const secretKeeper = (files: VaultFiles): SecretKeeper["Service"] => {
  const one_at_a_time = Semaphore.makeUnsafe(1)
  /** Stores a secret idempotently: an existing one must be identical. */
  const storeOnce = Effect.fnUntraced(function* (id: string, secret: NewSecret) {
    const sealed = yield* Effect.mapError(findSecret(files, id), asIdentityFailure)
    if (sealed === undefined)
      return yield* Effect.mapError(storeSecret(files, secret, id), unavailable)
    const payload = yield* Effect.mapError(decryptSecret(files, id, sealed), asIdentityFailure)
    const is_same = sealed.project_id === secret.project_id && sealed.name === secret.name
    return is_same && payload.equals(secret.payload) ? hrefOf(id) : yield* key_reused
  })
  return {
    put: ({ project_id, name = "", payload }, origin) => {
      const secret = { project_id, name, payload: Buffer.from(Redacted.value(payload)) }
      const id = derivedId(files.key, "secret", origin)
      if (id === undefined) return Effect.mapError(storeSecret(files, secret), unavailable)
      return one_at_a_time.withPermit(storeOnce(id, secret))
    },
  }
}
