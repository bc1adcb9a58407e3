import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { machine, Webhook, type WebhookContext } from "#actors/system/webhook.ts"
import {
  WebhookChanged,
  WebhookCreated,
  WebhookDeleted,
  WebhookDeliveriesAbandoned,
  WebhookDisabled,
  WebhookEnabled,
  type WebhookEvent,
  WebhookPaused,
  WebhookRedeliveryEnded,
  WebhookRedeliveryStarted,
  WebhookReplayStarted,
  WebhookSecretRotated,
} from "#events/system/webhook.ts"
import { openDatabase, project } from "#projections/read-model.ts"
import { findWebhook, listLetters } from "#projections/system/webhook.ts"
import { blueprint } from "#projections/system/webhook-model.ts"
import { token_chars_max } from "#schemas/message.ts"
import {
  ChangeWebhook,
  CreateWebhook,
  DeleteWebhook,
  DisableWebhook,
  EndRedelivery,
  GiveUpDeliveries,
  RedeliverLetters,
  ReplayWebhook,
  RotateWebhookSecret,
  redeliveries_max,
  services_max,
  types_max,
  url_chars_max,
  WebhookUrl,
} from "#schemas/system/webhook.ts"
import { sqlite } from "#sqlite"
import { histories } from "../../world/histories.ts"
import { temporaryFolder } from "../../world/programs/nats.ts"
import { assertStorable, everyState } from "../../world/state-table.ts"

const fields = {
  url: "https://example.com/hook",
  description: "",
  types: [],
  services: [],
  project_id: "p1",
  enabled: true,
  after: 7,
  key_id: "0123456789abcdef",
} as const
const created = WebhookCreated.make(fields)
const idle = WebhookCreated.make({ ...fields, enabled: false })
const disabling = { reason: "gone", detail: "It answered 410." } as const
const disabled = WebhookDisabled.make(disabling)
const paused = WebhookPaused.make({})
const enabled = WebhookEnabled.make({})
const deleted = WebhookDeleted.make({})
const rotation = { key_id: "fedcba9876543210", previous_until: "2026-11-23T00:00:00.000Z" }
const rotated = WebhookSecretRotated.make(rotation)
const replayed = WebhookReplayStarted.make({ after: 3 })
const changed = WebhookChanged.make({ url: "https://example.com/other" })
const letter = {
  sequence: 9,
  event_id: "4.0",
  event_type: "blob_stored",
  event_subject: "b",
  attempts: 12,
  first_failed_at: "2026-11-22T00:00:00.000Z",
  detail: "It answered 400.",
}
const given_up = WebhookDeliveriesAbandoned.make({ letters: [letter] })
const redelivering = WebhookRedeliveryStarted.make({ sequences: [9] })
const ended = { sequence: 9, is_delivered: true, detail: "It answered 200." }
const delivered = WebhookRedeliveryEnded.make(ended)
const failed = WebhookRedeliveryEnded.make({ ...ended, is_delivered: false })
const many = Array.from({ length: redeliveries_max }, (_, n) => n + 100)

const states = {
  absent: [],
  active: [created],
  paused: [created, paused],
  "paused from its birth": [idle],
  disabled: [created, disabled],
  "enabled again": [created, disabled, enabled],
  redelivering: [created, given_up, redelivering],
  "redelivering all it can": [created, WebhookRedeliveryStarted.make({ sequences: many })],
  deleted: [created, deleted],
} satisfies Record<string, ReadonlyArray<WebhookEvent>>

const gone = { absent: "svc.not_found", deleted: "svc.not_found" } as const
const conflict = "svc.conflict" as const
const idle_states = {
  ...gone,
  paused: conflict,
  "paused from its birth": conflict,
  disabled: conflict,
} as const

describe("a webhook", () => {
  everyState(Webhook, states, {
    CreateWebhook: [
      {
        command: CreateWebhook.make(fields),
        in: { absent: [created] },
        otherwise: conflict,
      },
      {
        with: "that waits",
        command: CreateWebhook.make({ ...fields, enabled: false }),
        in: { absent: [idle] },
        otherwise: conflict,
      },
    ],
    ChangeWebhook: [
      {
        with: "of its URL",
        command: ChangeWebhook.make({ url: changed.url ?? "" }),
        in: gone,
        otherwise: [changed],
      },
      {
        with: "to what it is",
        command: ChangeWebhook.make({ url: fields.url, types: [] }),
        in: gone,
        otherwise: [],
      },
      {
        with: "to deliver",
        command: ChangeWebhook.make({ enabled: true }),
        in: {
          ...gone,
          paused: [enabled],
          "paused from its birth": [enabled],
          disabled: [enabled],
        },
        otherwise: [],
      },
      {
        with: "to wait",
        command: ChangeWebhook.make({ enabled: false }),
        in: { ...gone, paused: [], "paused from its birth": [] },
        otherwise: [paused],
      },
    ],
    DisableWebhook: [
      { command: DisableWebhook.make(disabling), in: idle_states, otherwise: [disabled] },
    ],
    RotateWebhookSecret: [
      { command: RotateWebhookSecret.make(rotation), in: gone, otherwise: [rotated] },
    ],
    ReplayWebhook: [{ command: ReplayWebhook.make({ after: 3 }), in: gone, otherwise: [replayed] }],
    GiveUpDeliveries: [
      {
        command: GiveUpDeliveries.make({ letters: [letter] }),
        in: idle_states,
        otherwise: [given_up],
      },
    ],
    RedeliverLetters: [
      {
        command: RedeliverLetters.make({ sequences: [9, 9] }),
        in: { ...idle_states, redelivering: [], "redelivering all it can": conflict },
        otherwise: [redelivering],
      },
    ],
    EndRedelivery: [
      {
        command: EndRedelivery.make(ended),
        in: { ...gone, redelivering: [delivered] },
        otherwise: [],
      },
    ],
    DeleteWebhook: [{ command: DeleteWebhook.make({}), in: gone, otherwise: [deleted] }],
  })

  it("fits into a commit with all it can hold", () => {
    const long = "x".repeat(64)
    const names = (length: number) =>
      Array.from({ length }, (_, n) => `${n}-${long}`.slice(0, token_chars_max))
    const url = `https://example.com/${"u".repeat(url_chars_max)}`.slice(0, url_chars_max)
    const largest = WebhookCreated.make({
      ...fields,
      url,
      description: "\0".repeat(256),
      project_id: "…".repeat(128),
      types: names(types_max),
      services: names(services_max),
    })
    assert.isFalse(Schema.is(WebhookUrl)(`${url}u`))
    for (const character of ["ü", '"', "\\", "\n", " "]) {
      assert.isFalse(Schema.is(WebhookUrl)(`https://example.com/${character}`))
    }
    const sequences = many.map((n) => n + 10 ** 11)
    assertStorable(Webhook, [
      largest,
      rotated,
      rotated,
      WebhookRedeliveryStarted.make({ sequences }),
    ])
  })

  it("signs with its newest secret, and with the one before until a time", () => {
    const { context } = [created, rotated, rotated].reduce(Webhook.evolve, Webhook.initialState)
    const { previous_until, key_id } = rotation
    // The decider's context type is deferred: it is that of its chart.
    assert.deepEqual((context as WebhookContext).secrets, [
      { version: 3, key_id, until: null },
      { version: 2, key_id, until: previous_until },
    ])
  })
})

const all = [
  created,
  idle,
  changed,
  enabled,
  paused,
  disabled,
  rotated,
  replayed,
  given_up,
  redelivering,
  delivered,
  failed,
  deleted,
]
const histories_max = 2000

describe("webhooks' read model", () => {
  it.effect("says of each short history what the chart says", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const database = yield* Effect.provide(openDatabase(blueprint), sqlite(folder), {
        local: true,
      })
      let position = 0
      for (const { history } of histories(machine, all, 6)) {
        if (++position > histories_max) break
        const id = `w${position}`
        const commit = {
          v: 1 as const,
          actor: "test",
          at: "2026-11-22T00:00:00.000Z",
          events: history,
          commands: ["c"],
          prev: "",
          snapshot: { machine: 1, value: "", context: {} },
        }
        const stream = `system.webhook.${id}`
        yield* project(database, blueprint, [{ position, stream, hash: "", commit }])
        const { value, context } = history.reduce(Webhook.evolve, Webhook.initialState)
        const row = yield* findWebhook(database.db, id)
        const letters = yield* listLetters(database.db, id, { limit: 10 })
        if (value === "deleted") {
          assert.isUndefined(row)
          assert.deepEqual(letters, [])
          continue
        }
        const { url, types, secrets, redeliveries } = context as WebhookContext
        assert.equal(row?.state, value)
        assert.deepEqual([row?.url, row?.types], [url, types])
        assert.equal(row?.secret_version, secrets[0]?.version)
        assert.equal(row?.reason ?? null, value === "disabled" ? "gone" : null)
        const under_way = letters.filter(({ is_redelivering }) => is_redelivering)
        // Only letters that were given up can be redelivered.
        if (history.indexOf(given_up) < history.indexOf(redelivering) && letters.length > 0) {
          assert.deepEqual(
            under_way.map(({ sequence }) => sequence),
            redeliveries,
          )
        }
      }
      assert.isAbove(position, histories_max)
    }),
  )
})
