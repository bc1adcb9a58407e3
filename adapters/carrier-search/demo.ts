/**
 * Generates a registry file of fictitious carriers. Every name begins with DEMO.
 *
 * Source: decisions of document 3, carrier registry.
 */
import type { CarrierFile } from "#adapters/carrier-search/import.ts"

/** The first docket and the number of dockets. */
const first_mc = 100_001
const dockets = 60_000
const rows_of_chunk = 1000

const header = "docket_number,dot_number,common_stat,contract_stat,broker_stat,legal_name\n"
const places = [
  "BLUE RIDGE",
  "HIGH PLAINS",
  "LAKE SHORE",
  "RED RIVER",
  "PINE BARRENS",
  "GOLDEN GATE",
]
const trades = ["FREIGHT", "TRUCKING", "TRANSPORT", "HAULING", "EXPRESS", '"KING" LOGISTICS, SONS']
const forms = ["LLC", "INC", "CO"]

/** Pseudorandom numbers from 0 to 1 with a fixed seed. */
const sequence = (seed: number) => {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`

/** A row of the file. A third are carriers, the others brokers, both, or inactive. */
const rowOf = (mc: number, next: () => number) => {
  const pick = (of: ReadonlyArray<string>) => of[Math.floor(next() * of.length)] ?? ""
  const name = `DEMO ${pick(places)} ${pick(trades)} ${mc} ${pick(forms)}`
  const dot = String(3_000_000 + mc).padStart(8, "0")
  const common = next() < 0.4 ? "A" : "I"
  const contract = next() < 0.1 ? "A" : "N"
  const broker = next() < 0.2 ? "A" : "N"
  return `MC${mc},${dot},${common},${contract},${broker},${quoted(name)}\n`
}

async function* bytes() {
  const next = sequence(first_mc)
  let text = header
  for (let docket = 0; docket < dockets; docket++) {
    text += rowOf(first_mc + docket, next)
    if (docket % rows_of_chunk === rows_of_chunk - 1) {
      yield Buffer.from(text)
      text = ""
    }
  }
}

/** The generated file: always the same carriers. `as_of` is RFC 3339. */
export const demoCarriers = (as_of: string): CarrierFile => ({ name: "demo", as_of, bytes })
