/** `almanac audit`: the log for its operators. Source: DECISIONS "audit log for operators". */
import { Command } from "effect/cli"
import { audit as noun } from "#client/system/audit.ts"
import { exportVerb } from "#verbs/audit-export.ts"
import { follow, list } from "#verbs/audit-list.ts"
import { head, key, prove } from "#verbs/audit-prove.ts"
import { replay } from "#verbs/audit-replay.ts"
import { state } from "#verbs/audit-state.ts"
import { verify } from "#verbs/audit-verify.ts"
import { verbsOf } from "#verbs/client.ts"
import { diff } from "#verbs/rebuild.ts"

export const audit = Command.make("audit").pipe(
  Command.withDescription("Who did what when, what it looked like then, and whether it is whole"),
  Command.withExamples([
    { command: "almanac audit list --limit 20", description: "The newest 20 events" },
  ]),
  Command.withSubcommands([
    list,
    follow,
    replay,
    state,
    verify,
    exportVerb,
    prove,
    head,
    key,
    diff,
    ...verbsOf(noun),
  ]),
)
