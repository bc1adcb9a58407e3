/** The port that seals a list's cursors, so that no client can make one. */
import { Context } from "effect"

/** Source: document 1 §4 rule 5; DECISIONS, document 1, list. */
export class Cursors extends Context.Service<
  Cursors,
  {
    /** A cursor that holds the place: base64, at most 256 characters for 100 of it. */
    readonly seal: (place: string) => string
    /** The place in a cursor of this node, also of before a restart; undefined for any other. */
    readonly open: (cursor: string) => string | undefined
  }
>()("gateway/Cursors") {}
