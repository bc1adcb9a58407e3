/** `almanac jobs`. */

import { Argument, Command, Flag } from "effect/cli"
import { showOne } from "#cli/client/session.ts"
import { jobs as group } from "#cli/client/share-protection/job.ts"
import { watchJob } from "#cli/client/share-protection/watch.ts"
import { summaries } from "#cli/client/summaries.ts"
import { shared, subcommandsOf, withSession } from "#cli/requests.ts"

const admin = Flag.Boolean("admin").pipe(
  Flag.withDescription("Act as an operator, on a job of any project"),
  Flag.withDefault(false),
)

const watch = Command.make(
  "watch",
  { id: Argument.String("id").pipe(Argument.withDescription("ID of the job")), admin, shared },
  ({ id, admin, shared }) =>
    withSession(shared, async (session) => showOne(session, await watchJob(session, id, admin))),
).pipe(
  Command.withDescription("Wait for a job and show its progress; exit code 8 if it fails"),
  Command.withExamples([
    { command: "almanac jobs watch ID", description: "One live line: state, bytes, rate and time" },
  ]),
)

export const jobs = Command.make(group.name).pipe(
  Command.withDescription(summaries[group.name]),
  Command.withExamples(watch.examples),
  Command.withSubcommands([...subcommandsOf(group), watch]),
)
