/**
 * A carrier as a search answers it, and the numbers that it may be asked by.
 *
 * Source: document 3 §2 B; decisions of document 3, carrier validation.
 */
import { Schema } from "effect"

/** The largest MC number that can be asked for. */
export const mc_number_max = 99_999_999

export const McNumber = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: mc_number_max }))

/** Only what is active and a carrier alone is ever shown. Source: document 3 §2 B. */
export const Carrier = Schema.Struct({
  mcNumber: McNumber.annotateKey({ description: "The docket number, without its prefix." }),
  name: Schema.String.annotateKey({ description: "Legal name, as the registry has it." }),
  authorityStatus: Schema.tag("ACTIVE"),
  operatingType: Schema.tag("CARRIER"),
})
export type Carrier = typeof Carrier.Type

export const Carriers = Schema.Struct({ carriers: Schema.Array(Carrier) })
export type Carriers = typeof Carriers.Type

/** The numbers of one search, both ends included; 1 <= start <= end <= mc_number_max. */
export interface Range {
  readonly start: number
  readonly end: number
}

/** How many numbers they are. */
export const total = ({ start, end }: Range): number => end - start + 1
