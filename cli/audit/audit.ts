/** `almanac audit`: inspects the log. Source: DECISIONS "audit log for operators". */

import { Command } from "effect/cli"
import { exportCommand } from "#cli/audit/export.ts"
import { follow, list } from "#cli/audit/list.ts"
import { head, key, prove } from "#cli/audit/prove.ts"
import { replay } from "#cli/audit/replay.ts"
import { state } from "#cli/audit/state.ts"
import { verify } from "#cli/audit/verify.ts"
import { summaries } from "#cli/client/summaries.ts"
import { audit as group } from "#cli/client/system/audit.ts"
import { diff } from "#cli/log/rebuild.ts"
import { subcommandsOf } from "#cli/requests.ts"

export const audit = Command.make("audit").pipe(
  Command.withDescription(summaries.audit),
  Command.withExamples([
    { command: "almanac audit list --limit 20", description: "The newest 20 events" },
  ]),
  Command.withSubcommands([
    list,
    follow,
    replay,
    state,
    verify,
    exportCommand,
    prove,
    head,
    key,
    diff,
    ...subcommandsOf(group),
  ]),
)
