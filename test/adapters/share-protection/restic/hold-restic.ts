/** Starts a long backup, reports it, and waits to be killed. argv: repository and folder. */
import { Effect, Redacted } from "effect"
import { Engine, type Repository } from "#actors/share-protection/ports/engine.ts"
import { engineRestic } from "#adapters/share-protection/engine-restic.ts"

const [, , given = "", path = "", cache_dir = ""] = process.argv
const { access_key, secret_key, password, ...place } = JSON.parse(given)
const repository: Repository = {
  ...place,
  access_key: Redacted.make(access_key),
  secret_key: Redacted.make(secret_key),
  password: Redacted.make(password),
}
const folder = { path, host: "share", tags: [], include_patterns: [], exclude_patterns: [] }
const say = () =>
  Effect.sync(() => {
    process.stdout.write("under way\n")
  })

await Effect.runPromise(
  Effect.flatMap(Engine, (engine) => engine.backup(repository, folder, say)).pipe(
    Effect.provide(engineRestic({ cache_dir })),
  ),
)
