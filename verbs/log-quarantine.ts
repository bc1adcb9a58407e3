/** `almanac log quarantine`: what the log holds that no release wrote. */
import { Console, Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { type Quarantined, quarantined } from "#actors/system/quarantine.ts"
import { json } from "#verbs/audit-flags.ts"
import { settings } from "#verbs/root.ts"
import { beside } from "#verbs/session.ts"

/** Entries that are printed unless asked otherwise; all are counted. */
const shown_default = 100

const told = ({ position, stream, hash, reason }: Quarantined["first"][number]) =>
  `${position} ${stream}: ${reason} (sha256 ${hash})`

export const quarantine = Command.make(
  "quarantine",
  {
    limit: Flag.Int("limit").pipe(
      Flag.withDescription("Most that are printed; all are counted"),
      Flag.withDefault(shown_default),
    ),
    json,
  },
  Effect.fn(function* ({ limit, json }) {
    const configured = yield* settings
    const found = yield* Effect.provide(quarantined(limit), beside(configured))
    if (json) return yield* Console.log(JSON.stringify(found))
    for (const one of found.first) yield* Console.log(told(one))
    yield* Console.log(`${found.count} of ${found.entries} commits cannot be read`)
  }),
).pipe(
  Command.withDescription(
    "Commits that cannot be read: each keeps its position, and everything skips it",
  ),
  Command.withExamples([
    { command: "almanac log quarantine", description: "Their positions, streams and reasons" },
  ]),
)
