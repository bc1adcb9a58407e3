/** A lease over three nats-servers, whose holder pauses, resumes, and loses its server. */
import assert from "node:assert/strict"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { afterAll, beforeAll, it } from "vitest"
import { describeWithServer } from "../../world/programs/nats.ts"
import { network } from "../../world/server/gate.ts"
import { type NatsCluster, startNatsCluster } from "../../world/server/nats-cluster.ts"
import { cleanUp, newFolder, startScript, until } from "../../world/server/server.ts"

const timeout_ms = 120_000
/** Longer than the lease's TTL of 3 s plus the polling interval of a waiting process. */
const still_ms = 5_000
const names = ["one", "other"] as const

interface Line {
  readonly at: bigint
  readonly name: string
  /** Earlier terms of the same name have lower numbers. */
  readonly term: string
  readonly what: string
}

const linesIn = (file: string): ReadonlyArray<Line> =>
  !existsSync(file)
    ? []
    : readFileSync(file, "utf8")
        .split("\n")
        .slice(0, -1)
        .map((text) => {
          const [at = "0", term = "", what = ""] = text.split(" ")
          return { at: BigInt(at), term, name: term.split("-")[0] ?? "", what }
        })

/** The terms in clock order, without consecutive repetitions. */
const termsOf = (lines: ReadonlyArray<Line>) =>
  lines
    .filter(({ what }) => what === "held")
    .toSorted((one, two) => (one.at < two.at ? -1 : 1))
    .filter(({ term }, n, all) => term !== all[n - 1]?.term)

describeWithServer("a lease of two processes", () => {
  const net = network()
  let cluster: NatsCluster
  beforeAll(async () => {
    cluster = await startNatsCluster(net)
  }, timeout_ms)
  afterAll(async () => {
    await cluster?.stop()
    await cleanUp()
  }, timeout_ms)

  it(
    "is never held by both: a process paused beyond its end writes nothing more",
    async () => {
      const folder = newFolder()
      const file = join(folder, "lines")
      const script = join(import.meta.dirname, "lease-child.ts")
      const [one, other] = await Promise.all(
        names.map(async (name) => {
          const urls = await cluster.urlFor(name)
          return { name, ...startScript(folder, [script, urls, name, file]) }
        }),
      )
      assert(one && other, "there are two")
      const holds = (name: string) =>
        until(`${name} to hold it`, timeout_ms, () => termsOf(linesIn(file)).at(-1)?.name === name)
      const first = await until("one of them to hold it", timeout_ms, () =>
        termsOf(linesIn(file)).at(-1),
      )
      const [holder, waiter] = first.name === one.name ? [one, other] : [other, one]

      writeFileSync(`${file}.stop`, "")
      await Promise.all([holds(waiter.name), pause(still_ms)])
      holder.child.kill("SIGCONT")
      await until("the first to notice", timeout_ms, () =>
        linesIn(file).some(({ name, what }) => name === holder.name && what === "refused"),
      )

      cluster.cutOffUser(waiter.name)
      await holds(holder.name)
      net.heal()
      await pause(still_ms)
      for (const { child } of [one, other]) child.kill("SIGKILL")
      await Promise.all([one.ended, other.ended])
      // On a slow machine it may change hands more often, but terms never overlap.
      const terms = termsOf(linesIn(file)).map(({ term }) => term)
      assert.deepEqual(terms, [...new Set(terms)])
    },
    timeout_ms,
  )
})
