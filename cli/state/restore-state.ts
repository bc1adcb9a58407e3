/** `almanac restore-state`: restores a backup of state into an empty data folder and bus. */

import { Console, Effect, Redacted } from "effect"
import { Command, Flag } from "effect/cli"
import { verifyState } from "#adapters/state/proof.ts"
import { checkClaimable, claimFolder, restoreState } from "#adapters/state/restore.ts"
import { openStateStore } from "#adapters/state/store.ts"
import { summaries } from "#cli/client/summaries.ts"
import { settings } from "#cli/root.ts"
import {
  passphraseFile,
  passphraseOf,
  printProgress,
  StateRefused,
} from "#cli/state/state-flags.ts"
import { CommitJudge } from "#events/log.ts"
import { judge } from "#server/aggregate-kinds.ts"
import { busRestored, generations } from "#server/session.ts"

export const restore = Command.make(
  "restore-state",
  {
    from: Flag.String("from").pipe(Flag.withDescription("Folder of the backup")),
    check: Flag.Boolean("check").pipe(
      Flag.withDescription("Only verify the backup"),
      Flag.withDefault(false),
    ),
    files: Flag.Boolean("files-only").pipe(
      Flag.withDescription(
        "Restore only the data folder, if the bus at nats.url still has the log",
      ),
      Flag.withDefault(false),
    ),
    passphrase: passphraseFile,
  },
  Effect.fn(function* ({ from, check, files, passphrase }) {
    const configured = yield* settings
    const secret = yield* passphraseOf(passphrase)
    const phrase = secret && Redacted.value(secret)
    const store = yield* openStateStore(from, { passphrase: phrase, make: false })
    const { manifest } = store
    if (manifest === undefined) {
      return yield* new StateRefused({ message: `${from} has no backup.` })
    }
    const { dir: folder } = configured.data
    // Fail early, before reading the whole backup.
    if (!check) yield* checkClaimable(folder, manifest)
    const log = generations(configured)
    const { unreadable } = yield* verifyState(store, manifest, log).pipe(
      Effect.provideService(CommitJudge, judge),
    )
    const { last } = manifest.log
    const quarantined = unreadable === 0 ? "" : `, ${unreadable} unreadable commits, which are kept`
    yield* Console.log(`intact: position ${last}, made ${manifest.created_at}${quarantined}`)
    if (check) return
    yield* claimFolder(folder, manifest)
    yield* restoreState({
      store,
      manifest,
      folder,
      log,
      onProgress: printProgress,
      is_files_only: files,
    }).pipe(Effect.provide(busRestored(configured)))
    yield* Console.log(`restored to ${folder}: position ${last}; start it with almanac serve`)
  }),
).pipe(
  Command.withDescription(summaries["restore-state"]),
  Command.withExamples([
    {
      command: "almanac restore-state --from /backup/almanac --check",
      description: "Verify every byte and the hash chain of the log",
    },
    { command: "almanac restore-state --from /backup/almanac", description: "Restore it" },
  ]),
)
