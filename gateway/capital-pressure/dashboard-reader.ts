/** The port to the reader of the dashboard's file, which computes the responses. */
import { Context, type Effect } from "effect"
import type { Tier } from "#schemas/capital-pressure/metric.ts"
import type { Unreadable } from "#schemas/capital-pressure/rejection.ts"

/** The queries. `since`: YYYY-MM-DD, inclusive; null for the whole history. */
export type DashboardQuery =
  | { readonly kind: "dashboard" | "sources" | "scheduler" | "watchlist" }
  | { readonly kind: "history"; readonly metric_id: string; readonly since: string | null }
  | { readonly kind: "detail"; readonly metric_id: string }
  | { readonly kind: "tier"; readonly tier: Tier }

/** A response as bytes, computed once for each change of the file. */
export interface EncodedPage {
  readonly bytes: Uint8Array
  /** The gzipped bytes; null if compression saves too little. */
  readonly gzip: Uint8Array | null
  /** Identifies the bytes; without quotes. */
  readonly tag: string
}

export class DashboardReader extends Context.Service<
  DashboardReader,
  {
    /** Computes the response from the file at the time of the call, or later. */
    readonly read: (query: DashboardQuery) => Effect.Effect<EncodedPage, Unreadable>
    /** Why the file cannot be read; undefined when it can. */
    readonly problem: Effect.Effect<string | undefined>
  }
>()("gateway/DashboardReader") {}
