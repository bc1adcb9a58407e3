/** The tests' registry in its own process, with FMCSA's heavy tail, for the carrier suite. */
import { heavyTail, newCounts, startRegistry } from "../../test/carrier-search/registry-fake.ts"

const [median_ms = "60"] = process.argv.slice(2)
const seed = 7

const plan = {
  latency_ms: heavyTail(Number(median_ms), seed),
  dockets: (mc: number) => [
    { mc, dot: mc, name: `CARRIER ${mc} LLC`, active: mc % 3 > 0, carrier_only: mc % 2 > 0 },
  ],
}
const { fake } = await startRegistry(plan)

process.on("message", (args: { readonly shed_above?: number }) => {
  const { counts } = fake
  process.send?.({ url: fake.url, counts: { ...counts } })
  fake.plan = { ...plan, ...args }
  fake.requests.clear()
  Object.assign(counts, newCounts(), { in_flight: counts.in_flight })
})
process.on("disconnect", () => process.exit(0))
