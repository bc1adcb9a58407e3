/** The port to whoever reads the dashboard's file and makes what is shown of it. */
import { Context, type Effect } from "effect"
import type { Tier } from "#schemas/capital-pressure/metric.ts"
import type { Unreadable } from "#schemas/capital-pressure/rejection.ts"

/** What can be shown. `since`: YYYY-MM-DD, inclusive; null for the whole history. */
export type Asked =
  | { readonly kind: "dashboard" | "sources" | "scheduler" | "watchlist" }
  | { readonly kind: "history"; readonly metric_id: string; readonly since: string | null }
  | { readonly kind: "detail"; readonly metric_id: string }
  | { readonly kind: "tier"; readonly tier: Tier }

/** JSON as it goes over the wire; whoever asks again before anything changes gets the same one. */
export interface Shown {
  readonly bytes: Uint8Array
  /** The same by gzip; null where that is not worth it. */
  readonly gzip: Uint8Array | null
  /** The same for the same bytes, and for no others; without quotes. */
  readonly tag: string
}

export class DashboardReader extends Context.Service<
  DashboardReader,
  {
    /** As the file is at the time of the call, or later. */
    readonly show: (asked: Asked) => Effect.Effect<Shown, Unreadable>
    /** Why the file cannot be read; undefined when it can. */
    readonly trouble: Effect.Effect<string | undefined>
  }
>()("gateway/DashboardReader") {}
