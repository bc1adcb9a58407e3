/**
 * Traces: which span of which trace made a commit, so that what follows from it, in this process
 * or another, goes on in the same trace.
 *
 * Nothing is made, kept or sent while no collector is named: then no commit has a trace either.
 * Source: W3C Trace Context, version 00; decision 0145.
 */
import { Context, Effect, type Fiber, References, Tracer } from "effect"

/** `00-<32 hex: trace>-<16 hex: span>-<2 hex: flags>`. */
export type Trace = string

const pattern = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/
const zeros = /^0+$/

/** The span that a text names; undefined where it names none. */
export const spanOf = (trace: unknown): Tracer.ExternalSpan | undefined => {
  const [, traceId = "0", spanId = "0", flags = "0"] = pattern.exec(String(trace)) ?? []
  if (zeros.test(traceId) || zeros.test(spanId)) return undefined
  return Tracer.externalSpan({ traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 })
}

/** Whether anybody collects: nobody does by Effect's own tracer, whose spans nobody sees. */
export const isTraced = (context: Context.Context<never>) =>
  Context.get(context, References.TracerEnabled) &&
  Context.get(context, Tracer.Tracer) !== Tracer.nativeTracer

const traceIn = ({ context }: Fiber.Fiber<unknown, unknown>): Trace | undefined => {
  if (!isTraced(context)) return undefined
  const span = Context.getOrUndefined(context, Tracer.ParentSpan)
  if (span === undefined || !pattern.test(`00-${span.traceId}-${span.spanId}-00`)) return undefined
  return `00-${span.traceId}-${span.spanId}-${span.sampled ? "01" : "00"}`
}

/** The trace that whatever is begun now belongs to; undefined where nobody collects. */
export const traceNow: Effect.Effect<Trace | undefined> = Effect.withFiber((fiber) =>
  Effect.succeed(traceIn(fiber)),
)

/** Work that goes on in a trace; one that is none, or that nobody collects, changes nothing. */
export const underTrace =
  (trace: Trace | undefined) =>
  <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
    const parent = trace === undefined ? undefined : spanOf(trace)
    return parent === undefined ? work : Effect.withParentSpan(work, parent)
  }

export interface Spanned {
  /** Never what somebody wrote or keeps secret: names, kinds, ids, numbers. */
  readonly attributes?: () => Readonly<Record<string, string | number>>
  readonly kind?: Tracer.SpanKind
  /** Where it belongs; the span around it where that is absent. */
  readonly parent?: Trace | undefined
}

/** Work in a span of its own, which has no stack trace: that would be taken for each one. */
export const spanned =
  (name: string, { attributes, kind = "internal", parent }: Spanned = {}) =>
  <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.withFiber((fiber) => {
      if (!isTraced(fiber.context)) return work
      const outer = parent === undefined ? undefined : spanOf(parent)
      const options: Tracer.SpanOptions = {
        kind,
        ...(attributes === undefined ? {} : { attributes: attributes() }),
        ...(outer === undefined ? {} : { parent: outer }),
      }
      return Effect.withSpan(name, options, { captureStackTrace: false })(work)
    })

/** Traces that one piece of work is told in; more of them say nothing new. */
const traces_max = 32

/** Work that shows several commits at once: a span in the trace of each. */
export const spannedFor =
  (name: string, commits: () => ReadonlyArray<{ readonly trace?: Trace }>) =>
  <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.withFiber((fiber) => {
      if (!isTraced(fiber.context)) return work
      const traces = new Set(commits().flatMap(({ trace }) => (trace === undefined ? [] : [trace])))
      let told = work
      for (const parent of [...traces].slice(0, traces_max)) told = spanned(name, { parent })(told)
      return told
    })
