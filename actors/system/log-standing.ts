/** The log's size and its limit. The log never expires entries, so operators must watch it. */
import { Context, type Effect } from "effect"
import type { LogUnavailable } from "#events/log.ts"
import type { LogFigures } from "#schemas/system/audit.ts"

export class LogStanding extends Context.Service<
  LogStanding,
  { readonly figures: Effect.Effect<LogFigures, LogUnavailable> }
>()("actors/system/LogStanding") {}

/** Shares of the limit that trigger a warning, most severe first. */
const warn_shares = [0.85, 0.7] as const

/** The warning to operators; undefined below the first threshold. */
export const warningOf = ({ used_share, bytes, limit_bytes }: LogFigures) => {
  const passed = warn_shares.find((share) => (used_share ?? 0) >= share)
  if (passed === undefined) return undefined
  const text =
    `The log uses ${bytes} of ${limit_bytes} bytes, more than ${passed * 100}%: free space on ` +
    "its disk, or start a new generation with `almanac log roll` (docs/guide-audit.md)."
  return { passed, text }
}
