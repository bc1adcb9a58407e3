/**
 * The blob store as a witness of the log: the last commit of its node's journal, in a file next to
 * the blobs. They may be on a different disk from the log and the read models, and survive both.
 *
 * The file is written after the commit and never synced: a stale or missing file after a power cut
 * only weakens the witness. Source: decision 0190.
 */
import { renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Cause, Effect, Option } from "effect"
import { Log } from "#events/log.ts"
import { causeText } from "#schemas/cause-text.ts"
import { LogWatch } from "./watch.ts"
import {
  type Checkpointed,
  compareWith,
  readVolumeWitness,
  volume_witness_file,
} from "./witnesses.ts"

/** Maximum lag in milliseconds while the process runs. */
const behind_ms = 5_000

/** Timeout of one read of the log in milliseconds. */
const write_ms_max = 1_000

const file_mode = 0o600

const write = (dir: string, known: Omit<Checkpointed, "name">) => {
  const path = join(dir, volume_witness_file)
  const partial = `${path}.tmp`
  writeFileSync(partial, JSON.stringify(known), { mode: file_mode })
  renameSync(partial, path)
}

/**
 * Compares the log with the blob store's witness. An unexplained difference makes the log
 * read-only; if a restore or an accepted loss explains it, the witness is removed.
 */
export const compareVolume = Effect.fnUntraced(function* (dir: string) {
  const watch = Option.getOrUndefined(yield* Effect.serviceOption(LogWatch))
  if (watch === undefined) return
  const known = readVolumeWitness(dir)
  const { differs } = yield* compareWith(watch, known)
  if (differs && watch.problem() === undefined) {
    rmSync(join(dir, volume_witness_file), { force: true })
  }
})

/**
 * Updates the witness from the node's journal, which is this stream, until the scope closes, and
 * once more at the end. Write failures are ignored.
 */
export const keepVolumeWitness = Effect.fnUntraced(function* (stream: string, dir: string) {
  const log = yield* Log
  const watch = Option.getOrUndefined(yield* Effect.serviceOption(LogWatch))
  let written = 0
  const keep = Effect.gen(function* () {
    const last = yield* log.load(stream)
    // A log that has lost commits must not overwrite the witness.
    if (last === undefined || last.position === written || watch?.problem() !== undefined) return
    write(dir, { position: last.position, hash: last.hash })
    written = last.position
  }).pipe(
    Effect.timeoutOption(write_ms_max),
    Effect.catchCause((cause) =>
      Effect.logDebug(
        `${volume_witness_file} could not be written: ${causeText(Cause.squash(cause))}`,
      ),
    ),
  )
  yield* Effect.addFinalizer(() => keep)
  yield* Effect.sleep(behind_ms).pipe(Effect.andThen(keep), Effect.forever, Effect.forkScoped)
})
