/** The port that seals the cursors of lists, so that clients cannot forge them. */
import { Context } from "effect"

/** Source: document 1 §4 rule 5; DECISIONS, document 1, list. */
export class Cursors extends Context.Service<
  Cursors,
  {
    /**
     * Returns a cursor that contains the place: base64, at most 256 characters for a place of 100.
     */
    readonly seal: (place: string) => string
    /**
     * The place in a cursor that this node issued, even before a restart; undefined for any other.
     */
    readonly open: (cursor: string) => string | undefined
  }
>()("gateway/Cursors") {}
