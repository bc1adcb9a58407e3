/** Suite 11: a range of MC numbers at a registry like FMCSA's, with a median latency of 60 ms. */
import { type ChildProcess, fork } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { Effect, ManagedRuntime, Redacted, Stream } from "effect"
import { Agent, request } from "undici"
import { Registry } from "#actors/carrier-search/registry.ts"
import { registryFmcsa } from "#adapters/carrier-search/registry-fmcsa.ts"
import type { Counts } from "../../test/carrier-search/registry-fake.ts"
import { machine } from "../harness/machine.ts"
import type { Effort } from "../harness/round.ts"
import { drive } from "../harness/round.ts"
import { interleave } from "../harness/series.ts"
import type { Suite } from "../harness/suite.ts"
import { table } from "../harness/table.ts"

const width = 32
const numbers = 2000
const shed_above = 20

export const carrier: Suite = async ({ folder, rounds, seconds, onEnd }) => {
  const child = fork(join(import.meta.dirname, "carrier-registry.ts"), ["60"])
  onEnd(async () => void child.kill())
  const { url } = await tell(child, {})
  const effort = { in_flight: 1, seconds, runs_max: Number.POSITIVE_INFINITY }
  const answered = async () => {
    const { counts } = await tell(child, {})
    return counts.total - counts.aborted
  }
  const seats = [seat(url, width, answered), seat(url, 8, answered), sequential(url)]
  const measured = await interleave(seats, effort, rounds, folder)
  const columns = { rate: "numbers/s", per_run: 1, ours: nameOf(width), latency: false }
  const spent =
    `${rounds} rounds of ${seconds} s each, interleaved, after one discarded. The registry is a ` +
    "separate process on loopback, with a median of 60 ms and a heavy tail."
  const counted = [
    await shedding(child, url),
    await promiseAll(child, url),
    await twice(child, url),
  ]
  return [await machine(folder, [measured], []), spent, table(measured, columns), ...counted].join(
    "\n\n",
  )
}

const nameOf = (at_once: number) => `almanac, ${at_once} at once`

interface Told {
  readonly url: string
  /** Counts since the previous message. */
  readonly counts: Counts
}

const tell = async (child: ChildProcess, plan: { readonly shed_above?: number }): Promise<Told> => {
  const answer = once(child, "message")
  child.send(plan)
  const [first] = await answer
  return first
}

const open = (url: string, concurrency: number) => {
  const layer = registryFmcsa({
    url,
    web_key: Redacted.make("bench"),
    version: "bench",
    concurrency,
    rate_per_second: 0,
    timeout_seconds: 10,
    tries: 4,
    retry_percent: 10,
    cache_seconds: 0,
  })
  return ManagedRuntime.make(layer)
}

/** Searches for at most `until_ms` milliseconds; returns how many numbers it completed. */
const search = (end: number, until_ms?: number) => {
  let done = 0
  const whole = Effect.gen(function* () {
    const registry = yield* Registry
    yield* Stream.runForEach(registry.search({ start: 1, end }, "json"), (piece) =>
      Effect.sync(() => {
        done = piece.done
      }),
    )
  })
  const bounded = until_ms === undefined ? whole : Effect.ignore(Effect.timeout(whole, until_ms))
  return Effect.map(bounded, () => done)
}

const million = 1_000_000

/** Counts the numbers that the registry served, because the range never completes. */
const seat = (url: string, at_once: number, answered: () => Promise<number>) => ({
  name: nameOf(at_once),
  round: async ({ seconds }: Effort) => {
    await using ends = new AsyncDisposableStack()
    const runtime = open(url, at_once)
    ends.defer(() => runtime.dispose())
    await answered()
    const began = performance.now()
    await runtime.runPromise(search(million, seconds * 1000))
    const took_ms = performance.now() - began
    await runtime.dispose()
    const runs = await answered()
    const runs_per_s = (runs * 1000) / took_ms
    return { runs, runs_per_s, p50_ms: Number.NaN, p99_ms: Number.NaN }
  },
})

const sequential = (url: string) => ({
  name: "one after the other",
  round: async (effort: Effort) => {
    await using agent = closing(new Agent())
    return await drive(async (i) => void (await plainly(url, i + 1, agent.it)), 0, effort)
  },
})

const closing = (it: Agent) => ({ it, [Symbol.asyncDispose]: () => it.destroy() })

/** A client as one might write it in a minute. */
const plainly = async (url: string, mc: number, dispatcher: Agent) => {
  const address = `${url}/carriers/docket-number/${mc}?webKey=bench`
  const { statusCode, body } = await request(address, { dispatcher })
  await body.text()
  return statusCode === 200
}

const shedding = async (child: ChildProcess, url: string) => {
  await tell(child, { shed_above })
  const runtime = open(url, width)
  const done = await runtime.runPromise(search(numbers))
  await runtime.dispose()
  const { counts } = await tell(child, {})
  const extra = ((counts.total - numbers) / numbers) * 100
  return (
    `A registry that sheds load above ${shed_above} at once, of ${width}: ${numbers - done} of ` +
    `${numbers} numbers lost, ${extra.toFixed(1)}% more requests, ${counts.in_flight_max} at ` +
    "once at most."
  )
}

const promiseAll = async (child: ChildProcess, url: string) => {
  await tell(child, { shed_above })
  await using agent = closing(new Agent())
  const all = Array.from({ length: numbers }, (_, n) => plainly(url, n + 1, agent.it))
  const lost = (await Promise.allSettled(all)).filter(
    (one) => one.status === "rejected" || !one.value,
  ).length
  const { counts } = await tell(child, {})
  return (
    `Promise.all over the same numbers there: ${lost} of ${numbers} lost, ` +
    `${counts.in_flight_max} at once at most.`
  )
}

const twice = async (child: ChildProcess, url: string) => {
  await tell(child, {})
  const runtime = open(url, width)
  const both = Effect.all([search(numbers), search(numbers)], { concurrency: 2 })
  await runtime.runPromise(both)
  await runtime.dispose()
  const { counts } = await tell(child, {})
  return `Two equal searches at once: ${(counts.total / numbers).toFixed(2)} requests per number.`
}
