/** Where the publisher of this process is in the log. */
import { Context } from "effect"

export interface PublisherStanding {
  /** The last commit that it has processed; undefined while another process publishes. */
  position: number | undefined
  /** Why it waits there; undefined while it does not. */
  why: string | undefined
}

/** One for each process, written by its publisher. */
export const PublisherStanding = Context.Reference<PublisherStanding>(
  "projections/PublisherStanding",
  { defaultValue: () => ({ position: undefined, why: undefined }) },
)
