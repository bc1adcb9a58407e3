import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { valuesOf } from "../../contract/feeds.ts"
import { given, metricOf } from "../../world/capital-pressure/feed-given.ts"
import { documented } from "../../world/capital-pressure/publisher-answers.ts"

/** Number of damaged responses per publisher. */
const runs = 60
const seed = 20_261_122

/** A small generator (mulberry32), so that a failure can be reproduced from its seed. */
const generator = (start: number) => {
  let state = start
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** The body with bytes changed, truncated, repeated or moved. */
const damaged = (body: Buffer, random: () => number): Buffer => {
  const at = () => Math.floor(random() * body.length)
  const [one, other] = [at(), at()].toSorted((a, b) => a - b) as [number, number] // Two of them.
  const kind = Math.floor(random() * 4)
  if (kind === 0) return body.subarray(0, one)
  if (kind === 1) return Buffer.concat([body.subarray(0, other), body.subarray(one)])
  if (kind === 2) return Buffer.concat([body.subarray(0, one), body.subarray(other)])
  const changed = Buffer.from(body)
  for (let n = 0; n < 3; n += 1) changed[at()] = Math.floor(random() * 256)
  return changed
}

describe(`an answer that is damaged anywhere (seed ${seed})`, () => {
  const ids = ["nfci", "ofr_fsi", "cot_am_spx", "skew", "margin_cushion", "treasury_supply"]
  for (const metric_id of [...ids, "net_liquidity"]) {
    it.live(`is refused, or read as a series, of ${metric_id}`, () =>
      Effect.gen(function* () {
        const random = generator(seed)
        const { fetch, fake } = yield* given()
        fake.instead = ({ url }, response) => {
          void documented(url).then((answer) =>
            response.writeHead(200).end(damaged(Buffer.from(answer?.body ?? ""), random)),
          )
          return true
        }
        const today = new Date().toISOString().slice(0, 10)
        let refused = 0
        for (let run = 0; run < runs; run += 1) {
          const answer = yield* Effect.result(fetch(metricOf(metric_id)))
          if (Result.isFailure(answer)) {
            assert.equal(answer.failure._tag, "FeedFailed")
            refused += 1
            continue
          }
          const rows = valuesOf(answer.success)
          for (const [n, [date, value]] of rows.entries()) {
            assert.isTrue(Number.isFinite(value))
            assert.isTrue(date <= today && date > (rows[n - 1]?.[0] ?? ""))
          }
        }
        assert.isAbove(refused, 0)
      }),
    )
  }
})
