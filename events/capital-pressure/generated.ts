/** Marks generated data, which no publisher provided. */
import { Schema } from "effect"

/** True of generated data; absent of real data. */
export const Generated = { demo: Schema.optionalKey(Schema.Literal(true)) }

/** The mark as part of an event. */
export const generated = (demo: boolean): { readonly demo?: true } => (demo ? { demo } : {})
