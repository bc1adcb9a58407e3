/** A scripted restic: a script in place of restic, with repositories in folders. */
import { cpSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Layer, Redacted, type Scope } from "effect"
import {
  Engine,
  type FolderBackup,
  type OnProgress,
  type Repository,
} from "#actors/share-protection/ports/engine.ts"
import { engineResticAt, type ResticOptions } from "#adapters/share-protection/engine-restic.ts"
import { placeOf } from "#restic"
import { emptyFolder } from "../../folder.ts"
import { temporaryFolder } from "../../programs/nats.ts"
import { restic, script } from "../../programs/restic.ts"
import { lightenKey } from "./light-key.ts"

export const secrets = {
  access_key: "AKSECRETSECRET0001",
  secret_key: "a-secret-key-of-the-bucket",
  password: "a-password-of-the-repository",
}

/** A bucket that no test accesses. */
export const repository: Repository = {
  endpoint: "http://127.0.0.1:9",
  bucket: "bucket-one",
  region: null,
  addressing_mode: "path",
  ca_cert: null,
  access_key: Redacted.make(secrets.access_key),
  secret_key: Redacted.make(secrets.secret_key),
  password: Redacted.make(secrets.password),
}

/** A program in place of restic: a shell script in which `$calls` is a log file in the folder. */
export const fakeRestic = (folder: string, lines: ReadonlyArray<string>) => {
  const version = '{"message_type":"version","version":"0.19.1","go_version":"go1.26.4"}'
  return script(
    folder,
    "fake-restic",
    `calls='${folder}/calls'`,
    'for word in "$@"; do',
    `  if [ "$word" = version ]; then echo 'restic 0.19.1'; echo '${version}'; exit 0; fi`,
    "done",
    ...lines,
  )
}

/** Runs the body on an engine with such a program. */
export const withScript = <A, E>(
  lines: ReadonlyArray<string>,
  body: (folder: string) => Effect.Effect<A, E, Engine>,
  options: Partial<ResticOptions> = {},
) =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const binary = fakeRestic(folder, lines)
    const layer = engineResticAt({ binary, cache_dir: `${folder}/cache`, ...options }, placeOf)
    return yield* Effect.provide(body(folder), Layer.fresh(layer))
  }).pipe(Effect.scoped)

/** The engine with the real restic; a repository is a folder with the name of its bucket. */
export const inFolders = (folder: string, binary = restic) =>
  engineResticAt({ binary, cache_dir: `${folder}/cache` }, (place) => ({
    options: [],
    ca_cert: null,
    secrets: [],
    environment: {
      RESTIC_REPOSITORY: `${folder}/${place.bucket}`,
      RESTIC_PASSWORD: Redacted.value(place.password),
    },
  }))

let made: string | undefined

/**
 * Removes the repository that `newRepository` copies; each test file that uses it calls this at the
 * end.
 */
export const removeRepository = () => {
  if (made !== undefined) rmSync(made, { recursive: true, force: true })
  made = undefined
}

/**
 * A new repository in this folder. restic creates one for all tests of a file, which takes two
 * seconds.
 */
export const newRepository = Effect.fnUntraced(function* (folder: string) {
  const place = `${folder}/${repository.bucket}`
  if (made !== undefined) return cpSync(made, place, { recursive: true })
  yield* (yield* Engine).init(repository)
  lightenKey(place, secrets.password)
  made = mkdtempSync(join(tmpdir(), "almanac-repository-"))
  cpSync(place, made, { recursive: true })
})

/** Runs the body on that engine with a new repository and its folder. */
export const withRepository = <A, E>(
  body: (engine: Engine["Service"], folder: string) => Effect.Effect<A, E, Scope.Scope>,
) =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    return yield* Effect.gen(function* () {
      yield* newRepository(folder)
      return yield* body(yield* Engine, folder)
    }).pipe(Effect.provide(inFolders(folder)))
  }).pipe(Effect.scoped)

export const quiet = () => Effect.void
export const host = "a-share"
const nothing = { host, tags: [], include_patterns: [], exclude_patterns: [] }

export const id = "a".repeat(64)
export const summary = {
  message_type: "summary",
  snapshot_id: id,
  backup_start: "2026-01-02T03:04:05.678901Z",
  total_files_processed: 3,
  total_bytes_processed: 14,
  data_added_packed: 15,
}
export const says = (message: unknown) => `echo '${JSON.stringify(message)}'`

export const backUp = (folder: Partial<FolderBackup> = {}, onProgress: OnProgress = quiet) =>
  Effect.gen(function* () {
    const path = yield* emptyFolder
    return yield* (yield* Engine).backup(repository, { path, ...nothing, ...folder }, onProgress)
  }).pipe(Effect.scoped)
