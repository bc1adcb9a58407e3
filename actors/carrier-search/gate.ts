/** The gate to a registry: admits lookups, and learns from their outcomes. */
import { Cause, Clock, Effect, Exit, Latch } from "effect"
import * as circuits from "#actors/carrier-search/circuit.ts"
import { type FoundCarrier, type Lookup, LookupFailed } from "#actors/carrier-search/lookup.ts"
import { makePace, type PaceOptions } from "#actors/carrier-search/pace.ts"

export interface Health {
  /** Why the circuit is open, for people; null while it is closed. */
  readonly detail: string | null
  /** Current maximum number of concurrent lookups. */
  readonly concurrency: number
  /** Clock milliseconds; null: never. */
  readonly last_answer_at: number | null
  readonly last_error_at: number | null
  readonly last_error: string | null
}

export interface Gate {
  /** Makes one lookup when the circuit and the pace allow it. */
  readonly lookup: Lookup
  readonly health: Effect.Effect<Health>
}

interface Attempt {
  readonly pass: circuits.Pass
  /** Clock milliseconds. */
  readonly began: number
}

export const makeGate = (options: PaceOptions & { readonly lookup: Lookup }): Gate => {
  const pace = makePace(options)
  /** Open while no trial is running. */
  const settled = Latch.makeUnsafe(true)
  let circuit: circuits.Circuit = circuits.closed
  let last: Pick<Health, "last_answer_at" | "last_error_at" | "last_error"> = {
    last_answer_at: null,
    last_error_at: null,
    last_error: null,
  }

  const settle = ({ pass }: Attempt, next: circuits.Circuit) => {
    circuit = next
    if (pass === "trial") settled.openUnsafe()
  }

  const onAnswer = (attempt: Attempt, found: ReadonlyArray<FoundCarrier>) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      settle(attempt, circuits.succeeded(circuit, attempt.pass))
      last = { ...last, last_answer_at: now }
      return Effect.as(pace.adapt({ began: attempt.began, now, answer: "good" }), found)
    })

  const onFailure = (attempt: Attempt, failure: LookupFailed) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const { kind, reason, after_ms } = failure
      const { pass, began } = attempt
      const is_final = kind === "final"
      settle(attempt, circuits.failed(circuit, pass, { is_final, reason, began, now }))
      last = { ...last, last_error_at: now, last_error: reason }
      if (after_ms !== undefined) pace.pauseUntil(now + after_ms)
      const adapted =
        kind === "busy" || kind === "refused"
          ? pace.adapt({ began, now, answer: kind })
          : Effect.void
      return Effect.andThen(adapted, Effect.fail(failure))
    })

  const attemptLookup = (mc: number, attempt: Attempt) =>
    options.lookup(mc).pipe(
      Effect.matchEffect({
        onSuccess: (found) => onAnswer(attempt, found),
        onFailure: (failure) => onFailure(attempt, failure),
      }),
      Effect.onExit((exit) => {
        const was_interrupted = Exit.isFailure(exit) && !Cause.hasFails(exit.cause)
        if (was_interrupted) settle(attempt, circuits.abandoned(circuit, attempt.pass))
        return Effect.void
      }),
    )

  const lookUpOnceAdmitted = (mc: number): ReturnType<Lookup> =>
    Effect.flatMap(Clock.currentTimeMillis, (began) => {
      const [pass, next] = circuits.admit(circuit, began)
      circuit = next
      if (pass === "no") return Effect.fail(refusal(circuit, began))
      if (pass === "later") return Effect.andThen(settled.await, lookUpOnceAdmitted(mc))
      if (pass === "trial") settled.closeUnsafe()
      return attemptLookup(mc, { pass, began })
    })

  const health: Effect.Effect<Health> = Effect.sync(() => ({
    detail: circuit.state === "open" ? circuit.reason : null,
    concurrency: pace.limit(),
    ...last,
  }))
  return { lookup: (mc) => pace.run(lookUpOnceAdmitted(mc)), health }
}

const refusal = (circuit: circuits.Circuit, now: number) => {
  const { reason, trial_at } = circuit.state === "open" ? circuit : { reason: "", trial_at: now }
  const wait_s = Math.max(1, Math.ceil((trial_at - now) / 1000))
  const detail = `${reason}; no requests are sent to it for ${wait_s} s`
  return new LookupFailed({ kind: "final", reason: detail })
}
