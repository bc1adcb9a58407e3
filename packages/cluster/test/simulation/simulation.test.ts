/**
 * Many simulated clusters with random, seeded faults. Invariants: no acknowledged blob is lost or
 * returned wrongly, no deletion is undone, and in the calm phase every copy reaches its place.
 *
 * `npm run soak -- --only cluster-simulation` runs many more from a random seed; `--seed S` repeats
 * one.
 */
import assert from "node:assert/strict"
import { randomInt } from "node:crypto"
import { describe, it } from "vitest"
import { naive } from "./naive.ts"
import { mistakes } from "./naive-sweep.ts"
import { real } from "./real.ts"
import { describeViolation, type Play, plain_play, real_play, simulate } from "./simulation.ts"
import type { MakeSoftware, SoftwareParts } from "./software.ts"

const runs_set = process.env.ALMANAC_CLUSTER_SIMULATIONS
/** Further runs only until each of `wanted` has happened; the soak runs more. */
const runs_min = Number(runs_set ?? 60)
const runs_max = Number(runs_set ?? 150)
const plain_runs = 40
/** Maximum number of runs until a mistake is detected. */
const wrong_runs = 300
const seed_max = 2 ** 31
/** On a busy machine, in milliseconds. */
const timeout_ms = 600_000

/** Events that must occur in these runs, or they prove little. */
const wanted = [
  ...["NodeActivated", "NodeJoined", "NodeLeaveStarted", "NodeLeft", "NodeRemoved"],
  ...["NodeRevived", "NodeWentOffline", "a blob is deleted at one node", "a copy rots"],
  ...["a blob is deleted everywhere", "a connection is cut", "a cut is one way", "a node leaves"],
  ...[
    "a disk is exchanged",
    "a disk is full",
    "a disk stalls",
    "a message is lost",
    "a message is slow",
  ],
  ...["a node crashes", "a node has left", "a node is away for long", "a node is cut off"],
  ...["a node joins", "a node leaves at once", "news are late", "put: BlobCapacityExceeded"],
  ...["put: BlobTooFewNodes", "put: BlobShardsFailed", "put: stored", "put: exists"],
  ...["a rotten copy is found by the scrub", "get: BlobNotFound", "get: right"],
  ...["a node is back with an old disk", "two nodes are cut off", "two nodes join at once"],
  ...["a node is alone at first", "unacknowledged data rots"],
]

/** Seeds that once lost data, or never became idle. */
const regression_seeds = [
  ...[533_656_213, 536_692_045, 729_109_758, 776_732_132, 1_025_642_081, 1_063_145_453],
  ...[1_429_397_040, 1_889_652_575, 370, 1_614_394_093, 1_965_003_249, 1_382_462_778],
  ...[1_690_787_976, 788_960_249, 1_688_672_198, 447_292_841],
  ...[1_746_618_982, 204_218_356, 1_381_253_731],
]

/**
 * Runs of consecutive, fixed seeds; `npm run soak` uses random ones. After `count_min` runs it
 * continues until each of `events` has happened. Returns those that have not.
 */
const live = async (
  play: Play,
  count_min: number,
  count_max = count_min,
  events: ReadonlyArray<string> = [],
) => {
  const first = Number(process.env.ALMANAC_CLUSTER_SEED ?? 1_614_393_685)
  const missing = new Set(events)
  let count = 0
  for (; count < count_min || (count < count_max && missing.size > 0); count++) {
    const outcome = await simulate(first + count, play)
    assert(outcome.violation === undefined, describeViolation(outcome))
    for (const event of outcome.tally.keys()) missing.delete(event)
  }
  console.log(`cluster: seeds ${first} to ${first + count - 1}`)
  return [...missing]
}

describe("a simulated cluster", () => {
  it(
    `keeps its invariants in ${runs_min} runs`,
    async () => {
      const missing = await live(real_play, runs_min, runs_max, runs_max < 150 ? [] : wanted)
      assert.deepEqual(missing, [], "each of these has happened")
    },
    timeout_ms,
  )
  for (const seed of regression_seeds) {
    it(`keeps them in the run of seed ${seed}`, async () => {
      const outcome = await simulate(seed, real_play)
      assert(outcome.violation === undefined, describeViolation(outcome))
    })
  }
  it("is deterministic for a seed", async () => {
    const seed = randomInt(seed_max)
    const one = await simulate(seed, real_play)
    assert.deepEqual(await simulate(seed, real_play), one, `seed ${seed}`)
    const other = await simulate(seed + 1, real_play)
    assert.notEqual(other.fingerprint, one.fingerprint)
  })
})

/** Whether a mistake is detected within the maximum number of runs. */
const isFound = async (play: Play) => {
  for (let seed = 1; seed <= wrong_runs; seed++) {
    const { violation } = await simulate(seed, play)
    if (violation !== undefined) return true
  }
  return false
}

describe("the simulation", () => {
  it(`accepts a plain cluster in ${plain_runs} runs`, async () => {
    await live(plain_play(naive()), plain_runs)
  })
  for (const mistake of mistakes) {
    it(
      `detects a plain cluster that ${mistake}`,
      async () => {
        const is_found = await isFound(plain_play(naive(mistake)))
        assert(is_found, `an undetected fault in ${wrong_runs} lives`)
      },
      timeout_ms,
    )
  }
})

type FalseReport = (parts: SoftwareParts) => Partial<SoftwareParts>

/** Ports that report success without doing something. */
const false_reports: Readonly<Record<string, FalseReport>> = {
  "does not send deletions": ({ peers }) => ({
    peers: { ...peers, deleteClusterWide: async () => undefined },
  }),
  "has stores that do not delete": ({ local }) => ({
    local: { ...local, deleteClusterWide: async () => undefined },
  }),
  "never releases a copy": ({ local }) => ({
    local: { ...local, release: async () => true },
  }),
  "does not renew copies": ({ local }) => ({
    local: {
      ...local,
      renew: async (id) => {
        const [copy] = await local.copiesOf([id])
        return copy === undefined || copy.kind === "tombstone" ? undefined : copy
      },
    },
  }),
  "reports the same copy for every id": ({ peers }) => ({
    peers: {
      ...peers,
      copiesOf: async (peer, ids) => {
        const [first] = await peers.copiesOf(peer, ids)
        return ids.map((id) => first && { ...first, id })
      },
    },
  }),
}

const withFalseReport =
  (report: FalseReport): MakeSoftware =>
  (parts) =>
    real({ ...parts, ...report(parts) })

describe("the simulation detects a cluster that", () => {
  for (const [what, report] of Object.entries(false_reports)) {
    it(
      what,
      async () => {
        const is_found = await isFound({ ...real_play, make: withFalseReport(report) })
        assert(is_found, `an undetected fault in ${wrong_runs} lives`)
      },
      timeout_ms,
    )
  }
})
