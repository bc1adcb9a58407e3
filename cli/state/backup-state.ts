/** `almanac backup-state`: backs up the control plane, with or without a running server. */

import { existsSync, realpathSync } from "node:fs"
import { basename, dirname, join, resolve, sep } from "node:path"
import { Console, Effect, Layer, Redacted } from "effect"
import { Command, Flag } from "effect/cli"
import { lockFolder } from "#adapters/data-folder/lock.ts"
import { backupState } from "#adapters/state/backup.ts"
import { recordBackup } from "#adapters/state/last-backup.ts"
import { openStateStore } from "#adapters/state/store.ts"
import { notary } from "#adapters/system/notary.ts"
import { summaries } from "#cli/client/summaries.ts"
import { instance } from "#cli/instance.ts"
import { settings } from "#cli/root.ts"
import {
  passphraseFile,
  passphraseOf,
  printProgress,
  StateRefused,
} from "#cli/state/state-flags.ts"
import type { Settings } from "#schemas/settings.ts"
import { storedFiles } from "#schemas/system/state-backup.ts"
import { version } from "#server/program.ts"
import { attachedBuses, generations, log } from "#server/session.ts"

/** Sources of the backup: the log, the events, and the key that signs heads. */
const sources = (of: Settings) =>
  Layer.provideMerge(
    Layer.merge(log(of), notary(of.data.dir, of.audit.key_file)),
    attachedBuses(of),
  )

/** Resolves links in a path whose last components may not exist yet. */
const realOf = (path: string): string =>
  existsSync(path) ? realpathSync(path) : join(realOf(dirname(path)), basename(path))

/** Whether a path is within the data folder: such a backup would be lost with it. */
const isWithin = (folder: string, other: string) =>
  `${realOf(resolve(folder))}${sep}`.startsWith(`${realOf(resolve(other))}${sep}`)

export const backup = Command.make(
  "backup-state",
  {
    to: Flag.String("to").pipe(
      Flag.withDescription("Folder of the backup; a backup of the same log is extended"),
    ),
    passphrase: passphraseFile,
  },
  Effect.fn(function* ({ to, passphrase }) {
    const configured = yield* settings
    const { dir } = configured.data
    if (isWithin(to, dir)) {
      const message = `${to} is in the data folder and would be lost with it: use another folder.`
      return yield* new StateRefused({ message })
    }
    if (!existsSync(dir)) {
      const message = `The data folder ${dir} does not exist: set ALMANAC_DATA_DIR.`
      return yield* new StateRefused({ message })
    }
    const of = generations(configured)
    const secret = yield* passphraseOf(passphrase)
    const phrase = secret && Redacted.value(secret)
    const open = openStateStore(to, { passphrase: phrase, make: true })
    const is_alone = (yield* instance(configured)) === undefined
    // Checked before locking, which creates the folder.
    yield* open
    yield* lockFolder(to, ["run"])
    const manifest = yield* Effect.flatMap(open, (store) =>
      backupState({
        store,
        folder: dir,
        is_alone,
        almanac: version,
        onProgress: printProgress,
        log: of,
      }),
    ).pipe(Effect.provide(sources(configured)))
    const { last, generation } = manifest.log
    yield* recordBackup(dir, { at: manifest.created_at, position: last, to: resolve(to) })
    const bytes = storedFiles(manifest).reduce((sum, { stored_bytes }) => sum + stored_bytes, 0)
    yield* Console.log(
      `backed up to ${to}: position ${last} of generation ${generation}, ${bytes} bytes`,
    )
    yield* Console.error(
      "The backup excludes blobs, shares, data that can be rebuilt, and the configuration file.",
    )
  }, Effect.scoped),
).pipe(
  Command.withDescription(summaries["backup-state"]),
  Command.withExamples([
    {
      command: "almanac backup-state --to /backup/almanac",
      description: "Full at first, then incremental",
    },
    {
      command: "almanac backup-state --to /backup/almanac --passphrase-file /root/phrase",
      description: "Encrypted, for a disk that others can read",
    },
  ]),
)
