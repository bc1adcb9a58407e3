/**
 * Accepts the loss of commits that are missing from the log: records an event, so that everything
 * that was ahead continues from the remaining commits. Source: docs/decisions/0169.
 */
import { cp, mkdir, readdir, rename } from "node:fs/promises"
import { join } from "node:path"
import { Clock, DateTime, Effect, Schema } from "effect"
import { address, Commands } from "#actors/commands.ts"
import { Restorations, restoration_id } from "#actors/system/restoration.ts"
import { Log } from "#events/log.ts"
import type { Missing } from "#events/log-guard.ts"
import { preserved_folder } from "#journal"
import { causeText } from "#schemas/cause-text.ts"
import { AcceptLoss } from "#schemas/system/restoration.ts"

/** Folder for the read models and blocks that contain the missing commits. */
export const lost_folder = "log-lost"

/** Nothing was changed; the message contains the reason and a remedy. */
export class LossNotAccepted extends Schema.TaggedError<LossNotAccepted>()("LossNotAccepted", {
  message: Schema.String,
}) {}

export interface AcceptOptions {
  readonly data_dir: string
  readonly restore_id: string
  readonly missing: ReadonlyArray<Missing>
  readonly reason: string
}

const isMissing = (cause: unknown) =>
  cause instanceof Error && "code" in cause && cause.code === "ENOENT"

const ignoreMissing = (cause: unknown) => {
  if (!isMissing(cause)) throw cause
}

/**
 * Copies the read models, which the next start rebuilds, and moves the preserved blocks. Returns
 * the folder. An SQLite file is copied together with its WAL files.
 */
const preserveCopies = ({ data_dir, restore_id }: AcceptOptions) =>
  Effect.tryPromise({
    try: async () => {
      const folder = join(data_dir, lost_folder, restore_id)
      await mkdir(folder, { recursive: true, mode: 0o700 })
      await cp(join(data_dir, "read-models"), join(folder, "read-models"), {
        recursive: true,
      }).catch(ignoreMissing)
      for (const name of await readdir(data_dir)) {
        if (!name.startsWith("capital-pressure.sqlite")) continue
        await cp(join(data_dir, name), join(folder, name))
      }
      await rename(join(data_dir, preserved_folder), join(folder, "blocks")).catch(ignoreMissing)
      return folder
    },
    catch: (cause) =>
      new LossNotAccepted({
        message: `The read models cannot be moved aside: ${causeText(cause)}. Nothing was changed.`,
      }),
  })

/** Records the loss in the log, which accepts only this command. Returns the folder of copies. */
export const acceptLoss = Effect.fnUntraced(function* (options: AcceptOptions) {
  const { restore_id, missing, reason } = options
  const folder = yield* preserveCopies(options)
  const log = yield* Log
  const commands = yield* Commands
  const position = yield* log.end
  const at = DateTime.formatIso(DateTime.makeUnsafe(yield* Clock.currentTimeMillis))
  const origin = { command_id: `accept-loss-${restore_id}`, actor: "process:log-accept-loss", at }
  const command = AcceptLoss.make({ restore_id, position, missing, reason })
  yield* commands.send(origin, address(Restorations, restoration_id, command)).pipe(
    Effect.mapError(
      (cause) =>
        new LossNotAccepted({
          message: `The loss cannot be recorded: ${causeText(cause)}. Repeat the command.`,
        }),
    ),
  )
  return { folder, position }
})
