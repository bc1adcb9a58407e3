/**
 * Virtual time: runs fibers in one call, in an order that a seed determines, and advances time only
 * when all of them wait. So weeks take milliseconds, and a seed repeats a run exactly.
 */
import { Clock, Context, Duration, Effect, type Fiber, Random, Scheduler } from "effect"
import type { Seeded } from "./seeded.ts"

/** Steps of a fiber before another one gets its turn, as in the runtime. */
const steps_max = 2048

/** Maximum turns without advancing time: more indicate a busy loop. */
const turns_max = 200_000

interface Sleeper {
  readonly at: number
  readonly wake: () => void
  is_gone: boolean
}

export interface VirtualTime {
  /** The current time in epoch milliseconds. */
  readonly now: () => number
  /** Sets the clock without affecting sleeps. */
  readonly jump: (ms: number) => void
  readonly fork: <A, E, R>(
    effect: Effect.Effect<A, E, R>,
    context: Context.Context<R>,
  ) => Fiber.Fiber<A, E>
  /** Runs fibers and advances time until `isDone`, which is called whenever all of them wait. */
  readonly run: (isDone: () => boolean) => void
}

export const makeVirtualTime = (start: number, { next, between }: Seeded): VirtualTime => {
  const ready: Array<() => void> = []
  const sleepers: Array<Sleeper> = []
  /** Elapsed milliseconds, and the clock's offset. */
  let passed = 0
  let skew = 0
  const now = () => start + passed + skew

  const scheduler: Scheduler.Scheduler = {
    executionMode: "sync",
    shouldYield: ({ currentOpCount }) => currentOpCount >= steps_max,
    makeDispatcher: () => ({ scheduleTask: (task) => ready.push(task), flush: () => {} }),
  }
  const clock = clockOf(
    now,
    () => passed,
    (ms, wake) => {
      const sleeper = { at: passed + ms, wake, is_gone: false }
      sleepers.push(sleeper)
      return () => {
        sleeper.is_gone = true
      }
    },
  )
  const services = Context.make(Scheduler.Scheduler, scheduler).pipe(
    Context.add(Clock.Clock, clock),
    Context.add(Random.Random, {
      nextIntUnsafe: () => between(-(2 ** 31), 2 ** 31),
      nextDoubleUnsafe: next,
    }),
  )

  /** Runs one of the ready fibers, chosen at random. */
  const takeTurn = () => {
    const index = between(0, ready.length - 1)
    const task = ready[index]
    const last = ready.pop()
    if (index < ready.length && last !== undefined) ready[index] = last
    task?.()
  }
  const settle = () => {
    for (let turns = 0; ready.length > 0; turns++) {
      if (turns > turns_max) throw new Error(`At ${new Date(now()).toISOString()} all goes round.`)
      takeTurn()
    }
  }
  const sleepOn = () => {
    const waiting = sleepers.filter(({ is_gone }) => !is_gone)
    const first = waiting.reduce((least, { at }) => Math.min(least, at), Infinity)
    if (first === Infinity) throw new Error("Everybody waits, and nothing will ever happen.")
    passed = first
    const woken = waiting.filter(({ at }) => at <= first)
    sleepers.splice(0, sleepers.length, ...waiting.filter(({ at }) => at > first))
    for (const { wake } of woken) ready.push(wake)
  }

  return {
    now,
    jump: (ms) => {
      skew += ms
    },
    fork: (effect, context) => Effect.runForkWith(Context.merge(context, services))(effect),
    run: (isDone) => {
      for (settle(); !isDone(); settle()) sleepOn()
    },
  }
}

/** A clock whose time and wake-ups are controlled externally. */
const clockOf = (
  now: () => number,
  passed: () => number,
  sleepFor: (ms: number, wake: () => void) => () => void,
): Clock.Clock => {
  const nanos = (ms: number) => BigInt(Math.floor(ms)) * 1_000_000n
  return {
    currentTimeMillisUnsafe: now,
    currentTimeMillis: Effect.sync(now),
    currentTimeNanosUnsafe: () => nanos(now()),
    currentTimeNanos: Effect.sync(() => nanos(now())),
    monotonicTimeNanosUnsafe: () => nanos(passed()),
    monotonicTimeNanos: Effect.sync(() => nanos(passed())),
    sleep: (duration) =>
      Effect.callback((resume) => {
        const cancel = sleepFor(Math.max(0, Duration.toMillis(duration)), () => resume(Effect.void))
        return Effect.sync(cancel)
      }),
  }
}
