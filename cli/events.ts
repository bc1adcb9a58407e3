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
      service: filter("service", "Only of these services, with commas: blob-storage,plant-disease"),
      type: filter("type", "Only of these types, with commas: backup_completed,backup_failed"),
      subject: filter("subject", "Only what happened to this"),
    },
    after: Flag.String("after").pipe(
      Flag.withDescription(
        "Continue after the event of this id, <epoch>-<sequence>; 0 begins with the first",
      ),
      Flag.optional,
    ),
    count: Flag.Int("count").pipe(
      Flag.withDescription("End after so many; without it, go on until Ctrl-C"),
      Flag.withDefault(0),
    ),
    retry_for: Flag.Int("retry-for").pipe(
      Flag.withDescription("End where the server is away for so many seconds; without it, never"),
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
  Command.withDescription("Published events as they happen; it connects again by itself"),
  Command.withExamples([
    {
      command: "almanac events follow --service share-protection --json",
      description: "One CloudEvent a line, for a program",
    },
  ]),
)

export const events = Command.make(group.name).pipe(
  Command.withDescription(summaries[group.name]),
  Command.withExamples(followCommand.examples),
  Command.withSubcommands([followCommand, ...subcommandsOf(group)]),
)
