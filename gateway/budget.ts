/**
 * Budgets limit how much of a resource each caller holds at a time, so that no caller exhausts it.
 * Callers count by their identity, anonymous ones by their network; the callers of one project also
 * count together. A reserve is for admins.
 *
 * Source: decision 0179.
 */
import { Context, Effect, Schema, type Scope } from "effect"
import type { Caller } from "#gateway/caller.ts"
import { callerNetwork } from "#schemas/caller-network.ts"
import { type Settings, settings } from "#schemas/settings.ts"

/** The holder of a part of a budget. */
export interface Holder {
  /** The names under which it counts, each with its own maximum. */
  readonly names: ReadonlyArray<{ readonly name: string; readonly is_group: boolean }>
  readonly is_admin: boolean
}

/** Which budget is exhausted: the caller's own, or that of all callers. */
export type OverBudget = "caller" | "all"

export interface BudgetLimits {
  /** Maximum for all callers together. */
  readonly all_max: number
  /** Maximum for one caller. */
  readonly caller_max: number
  /** The part of `all_max` that only admins may use. */
  readonly admin_reserve: number
}

export interface Budget {
  /** The reason to reject this amount. An unused budget accepts any amount. */
  readonly refusal: (holder: Holder, amount?: number) => OverBudget | undefined
  /** Counts the amount until the scope closes; call `refusal` first. */
  readonly hold: (holder: Holder, amount?: number) => Effect.Effect<void, never, Scope.Scope>
  readonly held: () => number
  readonly limits: BudgetLimits
}

/** The callers of a project may together hold half of the total, so that others are not blocked. */
const group_share = 0.5

/** The holder: an authenticated caller and its project, or the network of an anonymous caller. */
export const holderOf = ({ actor, kind, roles, project_id }: Caller, address: string): Holder => {
  const is_known = kind !== "noauth"
  const is_admin = is_known && roles.has("admin")
  const own = { name: is_known ? actor : `network:${callerNetwork(address)}`, is_group: false }
  if (!is_known || is_admin || project_id === undefined) return { names: [own], is_admin }
  return { names: [own, { name: `project:${project_id}`, is_group: true }], is_admin }
}

/** A budget within these limits. */
export const budget = (limits: BudgetLimits): Budget => {
  const { all_max, caller_max, admin_reserve } = limits
  const open_max = all_max - admin_reserve
  const by_name = new Map<string, number>()
  let held = 0
  const add = ({ names }: Holder, amount: number) => {
    held += amount
    for (const { name } of names) {
      const left = (by_name.get(name) ?? 0) + amount
      if (left > 0) by_name.set(name, left)
      else by_name.delete(name)
    }
  }
  const fits = (before: number, amount: number, max: number) =>
    before === 0 || before + amount <= max
  return {
    refusal: ({ names, is_admin }, amount = 1) => {
      const is_own = names.some(({ name, is_group }) => {
        const max = is_group ? Math.max(caller_max, open_max * group_share) : caller_max
        return !fits(by_name.get(name) ?? 0, amount, max)
      })
      if (is_own) return "caller"
      return fits(held, amount, is_admin ? all_max : open_max) ? undefined : "all"
    },
    hold: (holder, amount = 1) =>
      Effect.acquireRelease(
        Effect.sync(() => add(holder, amount)),
        () => Effect.sync(() => add(holder, -amount)),
      ),
    held: () => held,
    limits,
  }
}

/**
 * Maximum number of concurrent predictions of the largest images; one caller may use half of them.
 */
const images_max = 16

interface Pixels {
  readonly budget: Budget
  readonly image_pixels_max: number
}

/** A budget of pixels in flight. */
export const pixelBudget = (image_pixels_max: number): Pixels => {
  const all_max = images_max * image_pixels_max
  const limits = { all_max, caller_max: all_max / 2, admin_reserve: image_pixels_max }
  return { budget: budget(limits), image_pixels_max }
}

/** The pixels in flight in this process. */
export const PixelsInFlight = Context.Reference<Pixels>("gateway/PixelsInFlight", {
  defaultValue: () => pixelBudget(Number(settings.plant.image_pixels_max.initial)),
})

/** One sixteenth of the event streams is reserved for admins. */
const stream_reserve_share = 16

type StreamSettings = Pick<Settings["api"], "max_event_streams" | "max_event_streams_per_caller">

/** A budget of event streams. */
export const streamBudget = (limits: StreamSettings): Budget => {
  const { max_event_streams: all_max, max_event_streams_per_caller: caller_max } = limits
  const admin_reserve = Math.floor(all_max / stream_reserve_share)
  return budget({ all_max, caller_max, admin_reserve })
}

/** The event streams of this process. */
export const EventStreams = Context.Reference<Budget>("gateway/EventStreams", {
  defaultValue: () =>
    streamBudget({
      max_event_streams: Number(settings.api.max_event_streams.initial),
      max_event_streams_per_caller: Number(settings.api.max_event_streams_per_caller.initial),
    }),
})

/** Thrown: the door responds with `Retry-After`. */
export class Exhausted extends Schema.TaggedError<Exhausted>()("Exhausted", {
  /** 429: the caller's own budget. 503: the budget of all callers. */
  status: Schema.Literals([429, 503]),
  detail: Schema.String,
  retry_after_s: Schema.Int,
}) {}
