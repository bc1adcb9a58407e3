/**
 * A carrier in search results, and the range of numbers to search.
 *
 * Source: document 3 §2 B; decisions of document 3, carrier validation.
 */
import { Schema } from "effect"

/** The largest MC number that can be searched. */
export const mc_number_max = 99_999_999

export const McNumber = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: mc_number_max }))

/** A carrier in search results: active, and not also a broker. Source: document 3 §2 B. */
export const Carrier = Schema.Struct({
  mcNumber: McNumber.annotateKey({ description: "The MC number, without the prefix." }),
  name: Schema.String.annotateKey({ description: "Legal name in the registry." }),
  authorityStatus: Schema.tag("ACTIVE").annotateKey({
    description: "Always `ACTIVE`: common or contract authority is active.",
  }),
  operatingType: Schema.tag("CARRIER").annotateKey({
    description: "Always `CARRIER`: the company has no active broker authority.",
  }),
}).annotate({ identifier: "Carrier", description: "A company that is only a carrier." })
export type Carrier = typeof Carrier.Type

export const Carriers = Schema.Struct({
  carriers: Schema.Array(Carrier).annotateKey({
    description: "The carriers, ordered by MC number. Empty if there are none.",
  }),
}).annotate({ identifier: "Carriers", description: "The carriers of the range." })
export type Carriers = typeof Carriers.Type

/** The numbers of a search, inclusive; 1 <= start <= end <= mc_number_max. */
export interface Range {
  readonly start: number
  readonly end: number
}

/** The number of MC numbers in a range. */
export const total = ({ start, end }: Range): number => end - start + 1
