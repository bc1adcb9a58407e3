/** `almanac log quarantine` and `log acknowledge`: unreadable commits in the log. */
import { Console, DateTime, Effect, Layer } from "effect"
import { Command, Flag } from "effect/cli"
import { v7 } from "uuid"
import { host } from "#actors/host.ts"
import { acknowledge, scanQuarantine, type UnreadableCommit } from "#actors/system/quarantine.ts"
import { json } from "#cli/audit/flags.ts"
import { settings } from "#cli/root.ts"
import { Acknowledgement } from "#schemas/system/quarantine.ts"
import { attachedLog, attachedLogReadOnly } from "#server/session.ts"

/** Default number of entries to print; the count includes all. */
const shown_default = 100

const lineOf = ({ position, stream, hash, reason, acknowledged }: UnreadableCommit) =>
  `${position} ${stream}: ${reason} (sha256 ${hash})${acknowledged ? ", acknowledged" : ""}`

export const quarantine = Command.make(
  "quarantine",
  {
    limit: Flag.Int("limit").pipe(
      Flag.withDescription("Maximum number of commits to print; all are counted (default: 100)"),
      Flag.withDefault(shown_default),
    ),
    json,
  },
  Effect.fn(function* ({ limit, json }) {
    const configured = yield* settings
    const found = yield* Effect.provide(scanQuarantine(limit), attachedLogReadOnly(configured))
    if (json) return yield* Console.log(JSON.stringify(found))
    for (const one of found.first) yield* Console.log(lineOf(one))
    const { count, entries, open } = found
    const acknowledged = count > open ? `, ${count - open} of them acknowledged` : ""
    yield* Console.log(`${count} of ${entries} commits cannot be read${acknowledged}`)
  }),
).pipe(
  Command.withDescription(
    "List unreadable commits; each keeps its position, and all readers skip it",
  ),
  Command.withExamples([
    { command: "almanac log quarantine", description: "Their positions, streams and reasons" },
  ]),
)

export const acknowledgeCommand = Command.make(
  "acknowledge",
  {
    reason: Flag.String("reason").pipe(
      Flag.withDescription("Reason why they can stay; recorded in the log"),
      Flag.withSchema(Acknowledgement.reason),
    ),
  },
  Effect.fn(function* ({ reason }) {
    const configured = yield* settings
    const at = DateTime.formatIso(yield* DateTime.now)
    const origin = { command_id: v7(), actor: "process:log-acknowledge", at }
    const { through, commits } = yield* Effect.provide(
      acknowledge(origin, reason),
      Layer.provideMerge(host, attachedLog(configured)),
    )
    yield* Console.log(`acknowledged ${commits} unreadable commits up to position ${through}`)
  }),
).pipe(
  Command.withDescription(
    "Acknowledge unreadable commits: ends the alerts about them; the log keeps them",
  ),
  Command.withExamples([
    {
      command: 'almanac log acknowledge --reason "published by a test script on 12 May"',
      description: "After finding out who published them",
    },
  ]),
)
