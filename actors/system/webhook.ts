/**
 * A webhook: absent → active or paused; disabled by the deliverer, enabled by its owner; deleted.
 *
 * Source: issue 10 §3; decision 0131.
 */
import { Effect, Equal, Struct } from "effect"
import { assign, type SnapshotFrom, setup } from "xstate"
import { decider } from "#actors/decider.ts"
import { stateAfter } from "#actors/host.ts"
import type { Log, Recorded } from "#events/log.ts"
import {
  WebhookChanged,
  WebhookCreated,
  WebhookDeleted,
  WebhookDeliveriesAbandoned,
  WebhookDisabled,
  WebhookEnabled,
  WebhookEvent,
  WebhookPaused,
  WebhookRedeliveryEnded,
  WebhookRedeliveryStarted,
  WebhookReplayStarted,
  WebhookSecretRotated,
} from "#events/system/webhook.ts"
import { Conflict, NotFound, WebhookRejection } from "#schemas/system/rejection.ts"
import {
  type CreateWebhook,
  redeliveries_max,
  WebhookCommand,
  type WebhookState,
} from "#schemas/system/webhook.ts"

type Created = Omit<typeof CreateWebhook.Type, "type" | "enabled" | "after" | "key_id">

export interface WebhookContext extends Created {
  /** Increases with every change that requires its deliverer to restart. */
  readonly revision: number
  /** Number of replays, 0 for none; the current one sends the events after `after`. */
  readonly replay: number
  readonly after: number
  /** Version and key of each signing secret, newest first, at most two. */
  readonly secrets: ReadonlyArray<{
    readonly version: number
    readonly key_id: string
    /** RFC 3339; null while it is the newest. */
    readonly until: string | null
  }>
  /** Number of abandoned events. */
  readonly given_up: number
  /** Dead letters that are being redelivered. */
  readonly redeliveries: ReadonlyArray<number>
}

type Context = WebhookContext

const union = (some: ReadonlyArray<number>, more: ReadonlyArray<number>) => [
  ...new Set([...some, ...more]),
]

const chart = setup({
  types: { context: {} as Context, events: {} as WebhookEvent },
  guards: {
    is_enabled: ({ event }) => event.type === "WebhookCreated" && event.enabled,
    has_room: ({ context, event }) =>
      event.type === "WebhookRedeliveryStarted" &&
      union(context.redeliveries, event.sequences).length <= redeliveries_max,
    is_under_way: ({ context, event }) =>
      event.type === "WebhookRedeliveryEnded" && context.redeliveries.includes(event.sequence),
  },
  actions: {
    begin: assign(({ event }) => {
      if (event.type !== "WebhookCreated") return {}
      const { key_id, ...created } = Struct.omit(event, ["type", "enabled"])
      const secrets = [{ version: 1, key_id, until: null }]
      return { ...created, revision: 1, replay: 0, secrets, given_up: 0, redeliveries: [] }
    }),
    change: assign(({ context, event }) => ({
      ...Struct.omit(event, ["type"]),
      revision: context.revision + 1,
    })),
    bump_revision: assign(({ context }) => ({ revision: context.revision + 1 })),
    rotate: assign(({ context, event }) => {
      if (event.type !== "WebhookSecretRotated") return {}
      const [newest] = context.secrets
      const version = (newest?.version ?? 0) + 1
      const before = newest && { ...newest, until: event.previous_until }
      const secrets = [
        { version, key_id: event.key_id, until: null },
        ...(before === undefined ? [] : [before]),
      ]
      return { secrets, revision: context.revision + 1 }
    }),
    replay: assign(({ context, event }) => {
      if (event.type !== "WebhookReplayStarted") return {}
      const { after } = event
      return { after, replay: context.replay + 1, revision: context.revision + 1 }
    }),
    count: assign(({ context, event }) => {
      if (event.type !== "WebhookDeliveriesAbandoned") return {}
      return { given_up: context.given_up + event.letters.length }
    }),
    redeliver: assign(({ context, event }) => {
      if (event.type !== "WebhookRedeliveryStarted") return {}
      const redeliveries = union(context.redeliveries, event.sequences)
      return { redeliveries, revision: context.revision + 1 }
    }),
    // The other redeliveries continue, so the revision stays.
    settle: assign(({ context, event }) => {
      if (event.type !== "WebhookRedeliveryEnded") return {}
      return { redeliveries: context.redeliveries.filter((one) => one !== event.sequence) }
    }),
  },
})

/** Transitions that the owner may trigger in any state. */
const owned = {
  WebhookChanged: { actions: "change" },
  WebhookSecretRotated: { actions: "rotate" },
  WebhookReplayStarted: { actions: "replay" },
  WebhookDeleted: { target: "deleted" },
} as const

export const machine = chart.createMachine({
  id: "system.webhook",
  // The context is empty before the webhook exists, and is not read then.
  context: {} as Context,
  initial: "absent",
  states: {
    absent: {
      on: {
        WebhookCreated: [
          { target: "active", guard: "is_enabled", actions: "begin" },
          { target: "paused", actions: "begin" },
        ],
      },
    },
    active: {
      on: {
        ...owned,
        WebhookPaused: { target: "paused", actions: "bump_revision" },
        WebhookDisabled: { target: "disabled", actions: "bump_revision" },
        WebhookDeliveriesAbandoned: { actions: "count" },
        WebhookRedeliveryStarted: { guard: "has_room", actions: "redeliver" },
        WebhookRedeliveryEnded: { guard: "is_under_way", actions: "settle" },
      },
    },
    paused: {
      on: { ...owned, WebhookEnabled: { target: "active", actions: "bump_revision" } },
    },
    disabled: {
      on: {
        ...owned,
        WebhookEnabled: { target: "active", actions: "bump_revision" },
        WebhookPaused: { target: "paused", actions: "bump_revision" },
      },
    },
    deleted: { type: "final" },
  },
})

type State = SnapshotFrom<typeof machine>

const reject = (state: State, command: WebhookCommand) => {
  if (command.type === "CreateWebhook") {
    return new Conflict({ detail: "A webhook with this id already exists." })
  }
  if (state.matches("absent") || state.matches("deleted")) {
    return new NotFound({ detail: "No such webhook." })
  }
  if (command.type === "RedeliverLetters" && state.matches("active")) {
    const detail =
      `At most ${redeliveries_max} redeliveries can be pending: retry when some are ` + `done.`
    return new Conflict({ detail })
  }
  return new Conflict({ detail: `The webhook is ${String(state.value)}: enable it first.` })
}

/** The fields whose value differs from the webhook's. */
const changed = (context: Context, requested: Partial<Created>) =>
  Object.fromEntries(
    Object.entries(requested).filter(
      // Object.entries loses the key type.
      ([name, value]) => !Equal.equals(context[name as keyof Created], value),
    ),
  )

/** The event that makes it active or paused, if it is not. A disabled webhook is neither. */
const switched = (state: State, enabled: boolean | undefined) => {
  if (enabled === undefined || state.matches(enabled ? "active" : "paused")) return []
  return enabled ? [WebhookEnabled.make({})] : [WebhookPaused.make({})]
}

export const Webhook = decider({
  machine,
  version: 1,
  command: WebhookCommand,
  event: WebhookEvent,
  rejection: WebhookRejection,
  propose: {
    CreateWebhook: (command) => [WebhookCreated.make(Struct.omit(command, ["type"]))],
    ChangeWebhook: ({ type: _, enabled, ...requested }, context, state) => {
      const changes = changed(context, requested)
      const same = Object.keys(changes).length === 0 && exists(state)
      return [...(same ? [] : [WebhookChanged.make(changes)]), ...switched(state, enabled)]
    },
    DisableWebhook: (command) => [WebhookDisabled.make(Struct.omit(command, ["type"]))],
    RotateWebhookSecret: (command) => [WebhookSecretRotated.make(Struct.omit(command, ["type"]))],
    ReplayWebhook: ({ after }) => [WebhookReplayStarted.make({ after })],
    GiveUpDeliveries: ({ letters }) => [WebhookDeliveriesAbandoned.make({ letters })],
    RedeliverLetters: ({ sequences }, context, state) => {
      const fresh = [...new Set(sequences)].filter((one) => !isRedelivered(context, one))
      if (fresh.length === 0 && state.matches("active")) return []
      return [WebhookRedeliveryStarted.make({ sequences: fresh })]
    },
    EndRedelivery: ({ type: _, ...ended }, context, state) =>
      exists(state) && !isRedelivered(context, ended.sequence)
        ? []
        : [WebhookRedeliveryEnded.make(ended)],
    DeleteWebhook: () => [WebhookDeleted.make({})],
  },
  reject,
})

/** The context is empty before the webhook exists. */
const isRedelivered = ({ redeliveries }: Partial<Context>, sequence: number) =>
  redeliveries?.includes(sequence) === true

const exists = (state: State) => !state.matches("absent") && !state.matches("deleted")

/** A webhook after a commit. */
export interface WebhookNow extends WebhookContext {
  readonly state: WebhookState | "deleted"
}

/** The signing secrets at a time in epoch milliseconds, newest first. */
export const signingAt = ({ secrets }: Pick<WebhookContext, "secrets">, now_ms: number) =>
  secrets.filter(({ until }) => until === null || Date.parse(until) > now_ms)

export const webhookAfter = (log: Log["Service"], recorded: Recorded) =>
  Effect.map(
    stateAfter(log, Webhook, recorded),
    ({ context, value }): WebhookNow => ({
      // The decider's state is a snapshot of this file's machine.
      ...(context as Context),
      state: value as WebhookNow["state"],
    }),
  )
