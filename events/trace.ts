/**
 * Traces: the trace and span that wrote a commit, so that its consequences, in this process or
 * another, continue the same trace.
 *
 * Without a configured collector no trace is created, stored or sent, and commits have none.
 * Source: W3C Trace Context, version 00; decision 0145.
 */
import { Context, Effect, type Fiber, References, Tracer } from "effect"

/** `00-<32 hex: trace>-<16 hex: span>-<2 hex: flags>`. */
export type Trace = string

const pattern = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/
const zeros = /^0+$/

/** The span in a traceparent text; undefined if the text is invalid. */
export const spanOf = (trace: unknown): Tracer.ExternalSpan | undefined => {
  const [, traceId = "0", spanId = "0", flags = "0"] = pattern.exec(String(trace)) ?? []
  if (zeros.test(traceId) || zeros.test(spanId)) return undefined
  return Tracer.externalSpan({ traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 })
}

/** Whether traces are collected; spans of Effect's default tracer are not. */
export const isTraced = (context: Context.Context<never>) =>
  Context.get(context, References.TracerEnabled) &&
  Context.get(context, Tracer.Tracer) !== Tracer.nativeTracer

const traceIn = ({ context }: Fiber.Fiber<unknown, unknown>): Trace | undefined => {
  if (!isTraced(context)) return undefined
  const span = Context.getOrUndefined(context, Tracer.ParentSpan)
  if (span === undefined || !pattern.test(`00-${span.traceId}-${span.spanId}-00`)) return undefined
  return `00-${span.traceId}-${span.spanId}-${span.sampled ? "01" : "00"}`
}

/** The current trace for new work; undefined if traces are not collected. */
export const traceNow: Effect.Effect<Trace | undefined> = Effect.withFiber((fiber) =>
  Effect.succeed(traceIn(fiber)),
)

/** Runs work in a trace; an invalid or uncollected trace has no effect. */
export const underTrace =
  (trace: Trace | undefined) =>
  <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
    const parent = trace === undefined ? undefined : spanOf(trace)
    return parent === undefined ? work : Effect.withParentSpan(work, parent)
  }

export interface Spanned {
  /** Never user content or secrets: only names, kinds, ids and numbers. */
  readonly attributes?: () => Readonly<Record<string, string | number>>
  readonly kind?: Tracer.SpanKind
  /** The parent span; the surrounding span if absent. */
  readonly parent?: Trace | undefined
}

/** Runs work in its own span, without a stack trace, which would be captured for each one. */
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

/** Maximum number of traces for one piece of work; more of them add no information. */
const traces_max = 32

/** Work that projects several commits at once: a span in the trace of each. */
export const spannedFor =
  (name: string, commits: () => ReadonlyArray<{ readonly trace?: Trace }>) =>
  <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.withFiber((fiber) => {
      if (!isTraced(fiber.context)) return work
      const traces = new Set(commits().flatMap(({ trace }) => (trace === undefined ? [] : [trace])))
      let traced = work
      for (const parent of [...traces].slice(0, traces_max))
        traced = spanned(name, { parent })(traced)
      return traced
    })
