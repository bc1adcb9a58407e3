/**
 * A folder with a state backup: content-addressed objects and a manifest that lists them, which is
 * replaced atomically. So an interrupted backup leaves the previous one intact, and unchanged files
 * are not written again.
 *
 * Source: docs/decisions/0143.
 */
import { createHash, randomUUID } from "node:crypto"
import { createReadStream } from "node:fs"
import { readdir, rename, rm, stat } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Option, Schema } from "effect"
import { writeSynced } from "#adapters/state/files.ts"
import {
  type Bytes,
  Derivation,
  decrypt,
  decryptText,
  encrypt,
  encryptText,
  type Key,
  keyOf,
  newDerivation,
} from "#adapters/state/seal.ts"
import { findBounded, makeFolder, syncFolder, writePrivate } from "#files"
import { causeText } from "#schemas/cause-text.ts"
import { Sha256 } from "#schemas/system/checkpoint.ts"
import { StateManifest, type StoredFile, storedFiles } from "#schemas/system/state-backup.ts"

/** The operation failed; the message names the file and a remedy. */
export class StateUnusable extends Schema.TaggedError<StateUnusable>()("StateUnusable", {
  message: Schema.String,
}) {}

/** Maximum size of a manifest: about 400,000 files. */
const manifest_bytes_max = 128 * 1024 * 1024

/** Maximum size of the first line, far above the actual one. */
const head_bytes_max = 4096

const Head = Schema.fromJsonString(
  Schema.Struct({
    format: Schema.Literal("almanac-state-1"),
    /** Hash of the following line, without its line feed. */
    sha256: Sha256,
    /** Absent if the backup is not encrypted. */
    sealed: Schema.optionalKey(Derivation),
  }),
)
const Manifest = Schema.fromJsonString(StateManifest)

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex")

export const unusable = (message: string) => new StateUnusable({ message })

/** An open backup folder. */
export interface StateStore {
  readonly folder: string
  /** The current manifest, if any. */
  readonly manifest: StateManifest | undefined
  readonly is_sealed: boolean
  /** Writes and syncs a file's bytes; rejects if the source or the disk fails. */
  readonly put: (path: string, mode: number, source: Bytes) => Promise<StoredFile>
  /** Whether its object exists with its full length. */
  readonly holds: (file: StoredFile) => Promise<boolean>
  /** Its bytes. Throws at the end, naming both files, if they are damaged. */
  readonly read: (file: StoredFile) => AsyncIterable<Uint8Array>
  /** Makes this the current backup and removes objects that it does not list. */
  readonly commit: (manifest: StateManifest) => Effect.Effect<void, StateUnusable>
}

const manifestPath = (folder: string) => join(folder, "manifest.jsonl")
const objectsIn = (folder: string) => join(folder, "objects")

/** Whether it is a folder, and its group and other mode bits; undefined if it does not exist. */
const findFolder = async (folder: string) => {
  try {
    const found = await stat(folder)
    return { is_folder: found.isDirectory(), shared_bits: found.mode & 0o077 }
  } catch {
    return undefined
  }
}

/**
 * Opens a backup folder. With `make` it is created or updated; a folder that others may read is
 * then rejected unless the backup is encrypted. Fails with StateUnusable.
 */
export const openStateStore = Effect.fnUntraced(function* (
  folder: string,
  { passphrase, make }: { readonly passphrase?: string | undefined; readonly make: boolean },
) {
  const status = yield* Effect.promise(() => findFolder(folder))
  if (status?.is_folder === false)
    return yield* unusable(`${folder} is not a folder: choose another.`)
  if (make && passphrase === undefined && status !== undefined && status.shared_bits !== 0) {
    return yield* unusable(
      `${folder} can be read by other users, and a backup contains secrets: run chmod 700 on it, ` +
        "or use a passphrase.",
    )
  }
  const text = yield* findBounded(manifestPath(folder), manifest_bytes_max).pipe(
    Effect.mapError(({ message }) => unusable(message)),
  )
  if (Option.isNone(text) && !make) {
    return yield* unusable(`${folder} contains no backup: manifest.jsonl is missing.`)
  }
  const found = Option.isNone(text)
    ? undefined
    : yield* openManifest(folder, text.value, passphrase)
  const derivation = newDerivation()
  const newKey = () =>
    passphrase === undefined
      ? Effect.succeed(undefined)
      : Effect.promise(() => keyOf(passphrase, derivation))
  const key = found === undefined ? yield* newKey() : found.key
  if (make) yield* createFolder(folder)
  return storeOf(folder, found?.manifest, key)
})

const createFolder = (folder: string) =>
  Effect.try({
    try: () => makeFolder(objectsIn(folder), 0o700),
    catch: (cause) => unusable(`${folder} cannot be created: ${causeText(cause)}`),
  })

/** Parses the manifest's two lines and derives the key. */
const openManifest = Effect.fnUntraced(function* (
  folder: string,
  text: string,
  passphrase: string | undefined,
) {
  const path = manifestPath(folder)
  const [first = "", second = "", ...rest] = text.split("\n")
  const damaged = (reason: string) => unusable(`${path} is damaged: ${reason}. Use another copy.`)
  const head = yield* Schema.decodeUnknownEffect(Head)(first).pipe(
    Effect.mapError(() => damaged("its first line has another format")),
  )
  if (rest.join("") !== "" || sha256(second) !== head.sha256) {
    return yield* damaged("its second line does not match the SHA-256 in its first line")
  }
  if (head.sealed === undefined && passphrase !== undefined) {
    return yield* unusable(
      `${folder} is not encrypted: omit the passphrase, or use another folder.`,
    )
  }
  if (head.sealed !== undefined && passphrase === undefined) {
    return yield* unusable(`${folder} is encrypted: set its passphrase with --passphrase-file.`)
  }
  const { sealed } = head
  const key =
    sealed === undefined || passphrase === undefined
      ? undefined
      : yield* Effect.promise(() => keyOf(passphrase, sealed))
  const plain = yield* Effect.try({
    try: () => (key === undefined ? second : decryptText(key, second)),
    catch: () => unusable(`The passphrase does not decrypt ${path}, or the file is damaged.`),
  })
  const manifest = yield* Schema.decodeUnknownEffect(Manifest)(plain).pipe(
    Effect.mapError((error) => damaged(error.message)),
  )
  return { manifest, key }
})

const storeOf = (
  folder: string,
  manifest: StateManifest | undefined,
  key: Key | undefined,
): StateStore => {
  const objects = objectsIn(folder)
  const pathOf = ({ object }: StoredFile) => join(objects, object)
  return {
    folder,
    manifest,
    is_sealed: key !== undefined,
    put: (path, mode, source) => writeObject(objects, key, { path, mode }, source),
    holds: async (file) => {
      const found = await stat(pathOf(file)).catch(() => undefined)
      return found?.size === file.stored_bytes
    },
    read: (file) => verifiedBytes(pathOf(file), key, file),
    commit: Effect.fnUntraced(function* (next) {
      const text = yield* Schema.encodeEffect(Manifest)(next).pipe(Effect.orDie)
      const second = key === undefined ? text : yield* Effect.promise(() => encryptText(key, text))
      const head = { format: "almanac-state-1" as const, sha256: sha256(second) }
      const first = Schema.encodeSync(Head)(key ? { ...head, sealed: key.derivation } : head)
      if (Buffer.byteLength(second) > manifest_bytes_max - head_bytes_max) {
        return yield* unusable(`${folder} cannot hold so many files.`)
      }
      yield* Effect.tryPromise({
        try: () => syncFolder(objects),
        catch: (cause) => unusable(`${objects} cannot be synced: ${causeText(cause)}`),
      })
      yield* writePrivate(manifestPath(folder), `${first}\n${second}\n`).pipe(
        Effect.mapError(({ message }) => unusable(message)),
      )
      const needed = new Set(storedFiles(next).map(({ object }) => object))
      yield* Effect.promise(() => removeUnused(objects, needed))
    }),
  }
}

/** File name of an object or an unfinished one. */
const object_name = /^([0-9a-f]{64}|\.[0-9a-f-]{36}\.tmp)$/

/** Removes unreferenced objects; failures are harmless. */
const removeUnused = async (objects: string, needed: ReadonlySet<string>) => {
  for (const name of await readdir(objects)) {
    if (needed.has(name) || !object_name.test(name)) continue
    await rm(join(objects, name), { force: true }).catch(() => undefined)
  }
}

/** Counts and hashes the bytes that pass through. */
const measure = () => {
  const hash = createHash("sha256")
  let bytes = 0
  return {
    pass: async function* (source: Bytes) {
      for await (const piece of source) {
        hash.update(piece)
        bytes += piece.length
        yield piece
      }
    },
    end: () => ({ bytes, sha256: hash.digest("hex") }),
  }
}

const writeObject = async (
  objects: string,
  key: Key | undefined,
  of: Pick<StoredFile, "path" | "mode">,
  source: Bytes,
): Promise<StoredFile> => {
  const partial = join(objects, `.${randomUUID()}.tmp`)
  const [plain, stored] = [measure(), measure()]
  const through = plain.pass(source)
  await writeSynced(partial, stored.pass(key === undefined ? through : encrypt(key, through)))
  const { bytes: stored_bytes, sha256: object } = stored.end()
  await rename(partial, join(objects, object))
  return { ...of, ...plain.end(), object, stored_bytes }
}

/** An object's decrypted bytes. */
async function* verifiedBytes(
  path: string,
  key: Key | undefined,
  file: StoredFile,
): AsyncIterable<Uint8Array> {
  const plain = measure()
  try {
    yield* plain.pass(key === undefined ? createReadStream(path) : decrypt(key, path))
  } catch (cause) {
    throw unusable(
      `${file.path} cannot be read from ${path}: ${causeText(cause)}. Use another copy.`,
    )
  }
  const { bytes, sha256 } = plain.end()
  if (bytes !== file.bytes || sha256 !== file.sha256) {
    throw unusable(
      `${file.path} is damaged in ${path}: its SHA-256 does not match. Use another copy.`,
    )
  }
}
