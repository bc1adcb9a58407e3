/** Webhooks, and their undeliverable events. Source: issue 10 §3; decision 0131. */
import { Effect, Struct } from "effect"
import type { Compilable, Kysely } from "kysely"
import {
  type WebhookChanged,
  WebhookEvent,
  type WebhookRedeliveryEnded,
} from "#events/system/webhook.ts"
import { type Place, projection } from "#projections/projection.ts"
import { compiler, type Write } from "#projections/statement.ts"
import type { Letter, WebhookState } from "#schemas/system/webhook.ts"

interface WebhookRow {
  readonly id: string
  readonly project_id: string | null
  readonly url: string
  readonly description: string
  /** JSON. */
  readonly types: string
  readonly services: string
  readonly state: WebhookState
  /** Why it is disabled. */
  readonly reason: string | null
  readonly detail: string | null
  readonly secret_version: number
  /** Until when the previous secret also signs. */
  readonly previous_until: string | null
  readonly created_at: string
  readonly updated_at: string
}

interface LetterRow {
  readonly webhook_id: string
  readonly sequence: number
  readonly event_id: string
  readonly event_type: string
  readonly event_subject: string
  readonly attempts: number
  readonly first_failed_at: string
  readonly given_up_at: string
  readonly detail: string
  /** 1 while it is being redelivered. */
  readonly is_redelivering: number
}

export interface WebhookTables {
  readonly system_webhook: WebhookRow
  readonly system_webhook_letter: LetterRow
}

const db = compiler<WebhookTables>()

/** An uncompiled write: webhooks are rarely written. */
const write = (query: Compilable): Write => {
  const { sql, parameters } = query.compile()
  return { sql, parameters }
}

const change = (id: string, values: Partial<WebhookRow>) =>
  write(db.updateTable("system_webhook").set(values).where("id", "=", id))

/** Names as stored in a row. */
const listed = ({
  types,
  services,
  ...rest
}: Omit<typeof WebhookChanged.Type, "type">): Partial<WebhookRow> => ({
  ...rest,
  ...(types === undefined ? {} : { types: JSON.stringify(types) }),
  ...(services === undefined ? {} : { services: JSON.stringify(services) }),
})

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

const project = (event: WebhookEvent, { id, commit: { at } }: Place): ReadonlyArray<Write> =>
  WebhookEvent.match(event, {
    WebhookCreated: ({ url, description, types, services, project_id, enabled }) => {
      const row: WebhookRow = {
        id,
        project_id,
        url,
        description,
        types: JSON.stringify(types),
        services: JSON.stringify(services),
        state: enabled ? "active" : "paused",
        reason: null,
        detail: null,
        secret_version: 1,
        previous_until: null,
        created_at: at,
        updated_at: at,
      }
      return [write(db.insertInto("system_webhook").values(row))]
    },
    WebhookChanged: ({ type: _, ...changes }) => [
      change(id, { ...listed(changes), updated_at: at }),
    ],
    WebhookEnabled: () => [
      change(id, { state: "active", reason: null, detail: null, updated_at: at }),
    ],
    WebhookPaused: () => [
      change(id, { state: "paused", reason: null, detail: null, updated_at: at }),
    ],
    WebhookDisabled: ({ reason, detail }) => [
      change(id, { state: "disabled", reason, detail, updated_at: at }),
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
  create: ({ schema }) => [
    schema
      .createTable("system_webhook")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("project_id", "text")
      .addColumn("url", "text", (column) => column.notNull())
      .addColumn("description", "text", (column) => column.notNull())
      .addColumn("types", "text", (column) => column.notNull())
      .addColumn("services", "text", (column) => column.notNull())
      .addColumn("state", "text", (column) => column.notNull())
      .addColumn("reason", "text")
      .addColumn("detail", "text")
      .addColumn("secret_version", "integer", (column) => column.notNull())
      .addColumn("previous_until", "text")
      .addColumn("created_at", "text", (column) => column.notNull())
      .addColumn("updated_at", "text", (column) => column.notNull()),
    schema.createIndex("system_webhook_project").on("system_webhook").columns(["project_id", "id"]),
    schema
      .createTable("system_webhook_letter")
      .addColumn("webhook_id", "text", (column) => column.notNull())
      .addColumn("sequence", "integer", (column) => column.notNull())
      .addColumn("event_id", "text", (column) => column.notNull())
      .addColumn("event_type", "text", (column) => column.notNull())
      .addColumn("event_subject", "text", (column) => column.notNull())
      .addColumn("attempts", "integer", (column) => column.notNull())
      .addColumn("first_failed_at", "text", (column) => column.notNull())
      .addColumn("given_up_at", "text", (column) => column.notNull())
      .addColumn("detail", "text", (column) => column.notNull())
      .addColumn("is_redelivering", "integer", (column) => column.notNull())
      .addPrimaryKeyConstraint("system_webhook_letter_key", ["webhook_id", "sequence"]),
  ],
  project,
})

/** A webhook as its owner sees it, without its secret. */
export interface WebhookDetails extends Omit<WebhookRow, "types" | "services"> {
  readonly types: ReadonlyArray<string>
  readonly services: ReadonlyArray<string>
}

const toWebhook = ({ types, services, ...row }: WebhookRow): WebhookDetails => ({
  ...row,
  types: JSON.parse(types),
  services: JSON.parse(services),
})

/** The webhook of this id; undefined if there is none. */
export const findWebhook = (db: Kysely<WebhookTables>, id: string) =>
  Effect.promise(async () => {
    const query = db.selectFrom("system_webhook").selectAll().where("id", "=", id)
    const row = await query.executeTakeFirst()
    return row && toWebhook(row)
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
    return (await some.orderBy("id").limit(limit).execute()).map(toWebhook)
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
    return rows.map((row) => ({
      ...Struct.omit(row, ["webhook_id", "is_redelivering"]),
      is_redelivering: row.is_redelivering === 1,
    }))
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
