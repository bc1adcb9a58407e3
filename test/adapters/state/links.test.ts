import { lchownSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { includedFiles } from "#adapters/state/files.ts"
import { temporaryFolder } from "../../world/programs/nats.ts"

it.live.skipIf(process.getuid?.() !== 0)(
  "root's backup follows links of its own, and another user's to nothing that is root's",
  () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const secret = join(yield* temporaryFolder, "secret")
      writeFileSync(secret, "root's")
      mkdirSync(join(folder, "identity"))
      symlinkSync(secret, join(folder, "identity", "link"))
      const paths = (yield* Effect.promise(() => includedFiles(folder))).map(({ path }) => path)
      assert.deepEqual(paths, ["identity/link"])
      lchownSync(join(folder, "identity", "link"), 4711, 4711)
      const refused = yield* Effect.flip(Effect.tryPromise(() => includedFiles(folder)))
      assert.include(String(refused.cause), "link owned by user 4711")
    }).pipe(Effect.scoped),
)
