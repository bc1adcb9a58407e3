/** `almanac events`. */

import { Option } from "effect"
import { Command, Flag } from "effect/cli"
import { summaries } from "#cli/client/summaries.ts"
import { follow, events as group } from "#cli/client/system/events.ts"
import { shared, subcommandsOf, withSession } from "#cli/requests.ts"

const filter = (name: string, what: string) =>
  Flag.String(name).pipe(Flag.withDescription(what), Flag.optional)

const followCommand = Command.make(
  "follow",
  {
    filters: {
      service: filter(
        "service",
        "Only events of these services, separated by commas: blob-storage,plant-disease",
      ),
      type: filter(
        "type",
        "Only events of these types, separated by commas: backup_completed,backup_failed",
      ),
      subject: filter("subject", "Only events of this subject"),
    },
    after: Flag.String("after").pipe(
      Flag.withDescription(
        "Continue after the event with this ID, <epoch>-<sequence>; 0 starts with the first event",
      ),
      Flag.optional,
    ),
    count: Flag.Int("count").pipe(
      Flag.withDescription("Exit after this number of events (default: run until Ctrl-C)"),
      Flag.withDefault(0),
    ),
    retry_for: Flag.Int("retry-for").pipe(
      Flag.withDescription(
        "Exit if the server is offline for this number of seconds (default: never)",
      ),
      Flag.optional,
    ),
    shared,
  },
  ({ filters, after, count, retry_for, shared }) => {
    const given = Object.entries(filters).flatMap(([name, value]) =>
      Option.isSome(value) ? [[name, value.value] as const] : [],
    )
    const options = {
      filters: given,
      after: Option.getOrUndefined(after),
      count,
      retry_for_s: Option.getOrUndefined(retry_for),
    }
    // Interruption is the normal end.
    return withSession(shared, (session) => follow(session, options), 0)
  },
).pipe(
  Command.withDescription("Print published events as they happen; reconnects automatically"),
  Command.withExamples([
    {
      command: "almanac events follow --service share-protection --json",
      description: "One CloudEvent per line, for a program",
    },
  ]),
)

export const events = Command.make(group.name).pipe(
  Command.withDescription(summaries[group.name]),
  Command.withExamples(followCommand.examples),
  Command.withSubcommands([followCommand, ...subcommandsOf(group)]),
)
