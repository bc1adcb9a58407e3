/**
 * The steps of a simulated disk: they end in any order, and any may fail, or be the last one before
 * power is lost or the process is killed.
 */
import type { Seeded } from "../../../../test/world/seeded.ts"

/** Changes of a disk are steps. Faults are planned by a step's number, from 1. */
export type StepKind =
  | "create"
  | "write"
  | "datasync"
  | "rename"
  | "remove"
  | "syncFolder"
  | "truncate"

export type End = "power" | "kill"

export type Fault =
  /** Power loss or kill before, after or during the step. */
  | { readonly kind: End; readonly moment: "before" | "within" | "after" }
  /** The step fails with EIO, and may have done any part of its work. */
  | { readonly kind: "error" }
  /** A write silently lands elsewhere in its file. Other steps succeed. */
  | { readonly kind: "misdirected" }

export interface Step {
  readonly kind: StepKind
  readonly path: string
  /** Does all of it. Returns the error if it cannot. */
  readonly act: (fault?: Fault) => Error | undefined
  /** Does any part of it, possibly none or all: the process ended during it. */
  readonly part: () => void
  /** Applies the effect of an error, if that is not a part. */
  readonly fail?: () => void
}

interface Pending {
  readonly end: () => void
  /** Applies the effect if the process ends meanwhile. */
  readonly leave: () => void
}

export const failure = (code: string, detail: string) =>
  Object.assign(new Error(`${code}: ${detail}`), { code })

const isExpectedEnd = (fault: Fault | undefined) =>
  fault?.kind === "power" || fault?.kind === "kill"

/** Completes pending steps one by one, in random order, until stopped. */
const makeQueue = (random: Seeded) => {
  const pending: Array<Pending> = []
  let is_stopped = false
  const pump = () => {
    if (is_stopped || pending.length === 0) return
    const [next] = pending.splice(random.between(0, pending.length - 1), 1)
    next?.end()
    if (pending.length > 0) setImmediate(pump)
  }
  return {
    add: (step: Pending) => {
      if (is_stopped) return
      pending.push(step)
      if (pending.length === 1) setImmediate(pump)
    },
    stop: () => {
      is_stopped = true
      for (const { leave } of pending.splice(0)) leave()
    },
  }
}

export const makeSteps = (random: Seeded) => {
  const queue = makeQueue(random)
  const faults = new Map<number, Fault>()
  const met: Array<string> = []
  const end = Promise.withResolvers<End>()
  let ended: End | undefined
  let count = 0

  const stop = (kind: End) => {
    if (ended !== undefined) return
    ended = kind
    queue.stop()
    end.resolve(kind)
  }
  /** A pending operation never resolves after the crash. */
  const never = () => new Promise<never>(() => {})
  const endWithin = (step: Step, fault: Fault) => {
    if (!("moment" in fault)) return
    if (fault.moment === "within") step.part()
    if (fault.moment === "after") step.act()
    stop(fault.kind)
  }

  return {
    count: () => count,
    faults: (): ReadonlyArray<string> => met,
    ended: () => ended,
    end: end.promise,
    stop,
    plan: (after: number, fault: Fault) => void faults.set(count + after, fault),
    /** A read, which changes nothing and is no step. */
    ask: <A>(answer: () => A) =>
      new Promise<A>((resolve, reject) => {
        const settle = () => {
          try {
            resolve(answer())
          } catch (cause) {
            reject(cause as Error) // Only `failure` is thrown in here.
          }
        }
        queue.add({ end: settle, leave: () => {} })
      }),
    take: (step: Step): Promise<void> => {
      if (ended !== undefined) return never()
      const fault = faults.get(++count)
      if (fault) met.push(`${fault.kind} at step ${count}, ${step.kind} ${step.path}`)
      if (fault !== undefined && isExpectedEnd(fault)) {
        endWithin(step, fault)
        return never()
      }
      return new Promise((resolve, reject) => {
        const settle = () => {
          const is_broken = fault?.kind === "error"
          if (is_broken) (step.fail ?? step.part)()
          const error = is_broken ? failure("EIO", `${step.kind} ${step.path}`) : step.act(fault)
          if (error === undefined) resolve()
          else reject(error)
        }
        queue.add({ end: settle, leave: step.part })
      })
    },
  }
}

export type Steps = ReturnType<typeof makeSteps>
