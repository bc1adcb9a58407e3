/** Webhooks, and their undeliverable events. Source: issue 10 §3; decision 0131. */
import { Effect, type Schema, Struct } from "effect"
import type { Compilable, Kysely } from "kysely"
import { WebhookEvent, type WebhookRedeliveryEnded } from "#events/system/webhook.ts"
import { type Place, projection } from "#projections/projection.ts"
import { compiler, type Write } from "#projections/statement.ts"
import { type Stored, table } from "#projections/table.ts"
import { type Letter, letter_row, webhook_row } from "#schemas/system/webhook.ts"

type WebhookRow = Schema.Struct<typeof webhook_row>["Type"]
type LetterRow = Schema.Struct<typeof letter_row>["Type"]

export interface WebhookTables {
  readonly system_webhook: Stored<WebhookRow>
  readonly system_webhook_letter: Stored<LetterRow>
}

const webhooks = table({
  name: "system_webhook",
  fields: webhook_row,
  indexes: [["project_id"]],
})
const dead_letters = table({
  name: "system_webhook_letter",
  fields: letter_row,
  key: ["webhook_id", "sequence"],
})

const db = compiler<WebhookTables>()

/** An uncompiled write: webhooks are rarely written. */
const write = (query: Compilable): Write => {
  const { sql, parameters } = query.compile()
  return { sql, parameters }
}

const add = (webhook_id: string, given_up_at: string, letter: Letter) => {
  const row = { webhook_id, ...letter, given_up_at }
  return write(
    db
      .insertInto("system_webhook_letter")
      .values({ ...row, is_redelivering: 0 })
      // An event abandoned twice, in a replay or after a killed deliverer, is one dead letter.
      .onConflict((same) => same.columns(["webhook_id", "sequence"]).doUpdateSet(row)),
  )
}

const redeliver = (webhook_id: string, sequence: number) =>
  write(
    db
      .updateTable("system_webhook_letter")
      .set({ is_redelivering: 1 })
      .where("webhook_id", "=", webhook_id)
      .where("sequence", "=", sequence),
  )

const end = (
  webhook_id: string,
  { sequence, is_delivered, detail }: typeof WebhookRedeliveryEnded.Type,
) => {
  if (is_delivered) {
    return write(
      db
        .deleteFrom("system_webhook_letter")
        .where("webhook_id", "=", webhook_id)
        .where("sequence", "=", sequence),
    )
  }
  return write(
    db
      .updateTable("system_webhook_letter")
      .set(({ eb }) => ({ is_redelivering: 0, detail, attempts: eb("attempts", "+", 1) }))
      .where("webhook_id", "=", webhook_id)
      .where("sequence", "=", sequence),
  )
}

const no_reason = { reason: null, detail: null } as const

const project = (event: WebhookEvent, { id, commit: { at } }: Place): ReadonlyArray<Write> =>
  WebhookEvent.match(event, {
    WebhookCreated: ({ type: _, enabled, ...chosen }) => [
      webhooks.insert({
        id,
        ...chosen,
        state: enabled ? "active" : "paused",
        ...no_reason,
        secret_version: 1,
        previous_until: null,
        created_at: at,
        updated_at: at,
      }),
    ],
    WebhookChanged: ({ type: _, ...changes }) => [
      webhooks.update(id, { ...changes, updated_at: at }),
    ],
    WebhookEnabled: () => [webhooks.update(id, { state: "active", ...no_reason, updated_at: at })],
    WebhookPaused: () => [webhooks.update(id, { state: "paused", ...no_reason, updated_at: at })],
    WebhookDisabled: ({ reason, detail }) => [
      webhooks.update(id, { state: "disabled", reason, detail, updated_at: at }),
    ],
    WebhookSecretRotated: ({ previous_until }) => [
      write(
        db
          .updateTable("system_webhook")
          .set(({ eb }) => ({
            secret_version: eb("secret_version", "+", 1),
            previous_until,
            updated_at: at,
          }))
          .where("id", "=", id),
      ),
    ],
    // Its cursor, which is reported separately, holds the position.
    WebhookReplayStarted: () => [],
    WebhookDeliveriesAbandoned: ({ letters }) => letters.map((letter) => add(id, at, letter)),
    WebhookRedeliveryStarted: ({ sequences }) =>
      sequences.map((sequence) => redeliver(id, sequence)),
    WebhookRedeliveryEnded: (ended) => [end(id, ended)],
    WebhookDeleted: () => [
      write(db.deleteFrom("system_webhook").where("id", "=", id)),
      write(db.deleteFrom("system_webhook_letter").where("webhook_id", "=", id)),
    ],
  })

export const webhook = projection<WebhookTables, WebhookEvent>({
  part: "system.webhook",
  event: WebhookEvent,
  create: ({ schema }) => [...webhooks.create(schema), ...dead_letters.create(schema)],
  project,
})

/** A webhook as its owner sees it, without its secret. */
export type WebhookDetails = WebhookRow

/** The webhook of this id; undefined if there is none. */
export const findWebhook = (db: Kysely<WebhookTables>, id: string) =>
  Effect.promise(async () => {
    const query = db.selectFrom("system_webhook").selectAll().where("id", "=", id)
    const row = await query.executeTakeFirst()
    return row && webhooks.toRow(row)
  })

/** Webhooks in the order of their ids after `marker`, of a project or (null) of all. */
export const listWebhooks = (
  db: Kysely<WebhookTables>,
  project_id: string | null,
  { limit, marker = "" }: { readonly limit: number; readonly marker?: string | undefined },
) =>
  Effect.promise(async () => {
    const all = db.selectFrom("system_webhook").selectAll().where("id", ">", marker)
    const some = project_id === null ? all : all.where("project_id", "=", project_id)
    return (await some.orderBy("id").limit(limit).execute()).map(webhooks.toRow)
  })

/** Number of webhooks of a project; null: webhooks for all events. */
export const countWebhooks = (db: Kysely<WebhookTables>, project_id: string | null) =>
  Effect.promise(async () => {
    const { count } = await db
      .selectFrom("system_webhook")
      .select(({ fn }) => fn.countAll<number>().as("count"))
      .where("project_id", project_id === null ? "is" : "=", project_id)
      .executeTakeFirstOrThrow()
    return count
  })

/** A webhook's dead letters after `marker`, in the order of the events. */
export const listLetters = (
  db: Kysely<WebhookTables>,
  webhook_id: string,
  { limit, marker = 0 }: { readonly limit: number; readonly marker?: number | undefined },
  { is_waiting = false } = {},
) =>
  Effect.promise(async () => {
    const all = db
      .selectFrom("system_webhook_letter")
      .selectAll()
      .where("webhook_id", "=", webhook_id)
      .where("sequence", ">", marker)
    const some = is_waiting ? all.where("is_redelivering", "=", 0) : all
    const rows = await some.orderBy("sequence").limit(limit).execute()
    return rows.map((row) => Struct.omit(dead_letters.toRow(row), ["webhook_id"]))
  })

/** Dead letters of all webhooks that are not being redelivered. */
export const countLetters = (db: Kysely<WebhookTables>) =>
  Effect.promise(async () => {
    const { count } = await db
      .selectFrom("system_webhook_letter")
      .select(({ fn }) => fn.countAll<number>().as("count"))
      .where("is_redelivering", "=", 0)
      .executeTakeFirstOrThrow()
    return Number(count)
  })
