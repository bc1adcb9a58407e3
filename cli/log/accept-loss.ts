/** `almanac log accept-loss`: gives up lost commits and records the loss in the log. */
import { Console, Effect, Layer, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { v7 } from "uuid"
import { host } from "#actors/host.ts"
import { acceptLoss, LossNotAccepted } from "#adapters/log/accept-loss.ts"
import { inUseReason } from "#cli/log/exclusive-access.ts"
import { settings } from "#cli/root.ts"
import { findingText, mergeMissing, missingText } from "#events/log-guard.ts"
import { compareWith, LogWatch, logGenerations, readWitnesses } from "#journal"
import type { Settings } from "#schemas/settings.ts"
import { missing_ranges_max } from "#schemas/system/restoration.ts"
import { busAlone, generations, log } from "#server/session.ts"

const refused = (message: string) => new LossNotAccepted({ message })

/** Lost commits according to every witness that is readable while no server runs. */
const examined = Effect.fnUntraced(function* ({ data, blob }: Settings) {
  const watch = yield* LogWatch
  yield* compareWith(watch, yield* readWitnesses(data.dir, blob.dir))
  return watch.findings()
})

const accept = Effect.fnUntraced(function* (configured: Settings, reason: string | undefined) {
  const findings = yield* Effect.provide(examined(configured), Layer.fresh(log(configured)))
  if (findings.length === 0) {
    yield* Console.log("No commit is missing from the log. Nothing was changed.")
    return
  }
  for (const finding of findings) yield* Console.log(findingText(finding))
  const missing = mergeMissing(findings.flatMap((finding) => finding.missing))
  if (missing.length > missing_ranges_max) {
    return yield* refused(
      `${missing.length} ranges are missing, but at most ${missing_ranges_max} can be recorded. ` +
        "Restore a backup with `almanac restore-state`.",
    )
  }
  if (reason === undefined) {
    return yield* refused(
      `Nothing was changed. To give up these commits (${missingText(missing)}), repeat the ` +
        'command with --reason "why". To keep them, restore a backup with `almanac restore-state`.',
    )
  }
  const restore_id = v7()
  const options = { data_dir: configured.data.dir, restore_id, missing, reason }
  // Without the guard, because this commit reopens the log.
  const open = Layer.provideMerge(host, Layer.fresh(logGenerations(generations(configured))))
  const { folder, position } = yield* Effect.provide(acceptLoss(options), open)
  yield* Console.log(`recorded as ${restore_id}: the log continues after position ${position}`)
  yield* Console.log(`${folder} holds the previous read models, which include the lost commits`)
  yield* Console.log("Next: almanac serve, which rebuilds the read models from the log.")
})

export const acceptLossCommand = Command.make(
  "accept-loss",
  {
    reason: Flag.String("reason").pipe(
      Flag.withDescription("Why the commits are given up; without it, the command only shows them"),
      Flag.optional,
    ),
  },
  Effect.fn(function* ({ reason }) {
    const configured = yield* settings
    const why = yield* inUseReason(configured)
    if (why !== undefined) return yield* refused(why)
    yield* Effect.provide(accept(configured, Option.getOrUndefined(reason)), busAlone(configured))
  }),
).pipe(
  Command.withDescription("Give up commits that the log has lost: record them, and reopen the log"),
  Command.withExamples([
    { command: "almanac log accept-loss", description: "Show the missing commits; change nothing" },
    {
      command: 'almanac log accept-loss --reason "disk failed on 12 May, no backup"',
      description: "Give them up; no server may be running",
    },
  ]),
)
