/** Position of this process's publisher in the log. */
import { Context } from "effect"

export interface PublisherStatus {
  /** The last commit it processed; undefined while another process publishes. */
  position: number | undefined
  /** Why it waits at that position; undefined if it does not wait. */
  why: string | undefined
}

/** One per process, written by its publisher. */
export const PublisherStatus = Context.Reference<PublisherStatus>("projections/PublisherStanding", {
  defaultValue: () => ({ position: undefined, why: undefined }),
})
