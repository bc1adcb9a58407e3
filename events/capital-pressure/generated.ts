/** A mark of what no publisher told. */
import { Schema } from "effect"

/** True of generated data; absent of real data. */
export const Generated = { demo: Schema.optionalKey(Schema.Literal(true)) }

/** The mark as an event has it. */
export const generated = (demo: boolean): { readonly demo?: true } => (demo ? { demo } : {})
