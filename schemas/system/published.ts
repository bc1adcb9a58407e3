/**
 * The published events of the platform; types are only added.
 *
 * Single deliveries are not published, because a webhook that receives all events would cause new
 * ones. Source: DECISIONS "published events"; issue 10 §3.
 */
import { Schema } from "effect"
import type { PublishedTypes } from "#schemas/published.ts"
import { DisableReason } from "#schemas/system/webhook.ts"

const described = (description: string) => ({ description })

const webhook = { aggregate: "webhook", subject: "the webhook" } as const

const token = { aggregate: "token", subject: "the token, by its SHA-256" } as const

const webhook_id = Schema.String.annotateKey(described("ID of the webhook."))

export const published = {
  state_restored: {
    aggregate: "restoration",
    subject: "`log`",
    when:
      "The log was restored from a backup, or missing commits were accepted as lost: events " +
      "published earlier for commits after this position are void. IDs of the following events " +
      "end with the restore's ID.",
    data: Schema.Struct({
      restore_id: Schema.String.annotateKey(described("ID of the restore.")),
      backup_id: Schema.String.annotateKey(
        described("ID of the backup; empty if missing commits were accepted as lost."),
      ),
      made_at: Schema.String.annotateKey(
        described("Time of the backup or of the acceptance of the loss, RFC 3339 in UTC."),
      ),
      position: Schema.Int.annotateKey(described("Last position that is still valid.")),
      missing: Schema.optionalKey(
        Schema.Array(Schema.Struct({ from: Schema.Int, to: Schema.Int })).annotate(
          described("Ranges of positions of the lost commits, inclusive."),
        ),
      ),
    }),
  },
  token_issued: {
    ...token,
    when: "A token was issued.",
    data: Schema.Struct({
      name: Schema.String.annotateKey(described("Name of the token; not unique.")),
      scopes: Schema.Array(Schema.String).annotateKey(described("Scopes of the blob service.")),
      roles: Schema.Array(Schema.String).annotateKey(described("Roles of share protection.")),
      expires_at: Schema.NullOr(Schema.String).annotateKey(
        described("Expiry of the token, RFC 3339 in UTC; null: valid until it is revoked."),
      ),
    }),
  },
  token_revoked: {
    ...token,
    when: "A token was revoked; no process accepts it.",
    data: Schema.Struct({ name: Schema.String.annotateKey(described("Name of the token.")) }),
  },
  webhook_created: {
    ...webhook,
    when: "A webhook was created.",
    data: Schema.Struct({
      webhook_id,
      is_enabled: Schema.Boolean.annotateKey(described("Whether the webhook was created enabled.")),
    }),
  },
  webhook_changed: {
    ...webhook,
    when: "The filter or the URL of a webhook was changed.",
    data: Schema.Struct({
      webhook_id,
      changed: Schema.Array(Schema.String).annotateKey(described("Names of the changed fields.")),
    }),
  },
  webhook_enabled: {
    ...webhook,
    when: "A webhook was enabled; it continues where it stopped.",
    data: Schema.Struct({ webhook_id }),
  },
  webhook_paused: {
    ...webhook,
    when: "A webhook was paused by its owner.",
    data: Schema.Struct({ webhook_id }),
  },
  webhook_disabled: {
    ...webhook,
    when: "A webhook was disabled: its URL is gone, or has accepted nothing for days.",
    data: Schema.Struct({
      webhook_id,
      reason: DisableReason.annotateKey(described("Why.")),
      detail: Schema.String.annotateKey(described("Result of the last attempt, as text.")),
    }),
  },
  webhook_secret_rotated: {
    ...webhook,
    when: "The secret of a webhook was rotated.",
    data: Schema.Struct({
      webhook_id,
      previous_until: Schema.String.annotateKey(
        described("Time until which the previous secret also signs, RFC 3339 in UTC."),
      ),
    }),
  },
  webhook_deleted: {
    ...webhook,
    when: "A webhook was deleted.",
    data: Schema.Struct({ webhook_id }),
  },
} as const satisfies PublishedTypes
