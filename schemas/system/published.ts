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

const webhook_id = Schema.String.annotateKey(described("The webhook's id."))

export const published = {
  state_restored: {
    aggregate: "restoration",
    subject: "`log`",
    when:
      "The log was restored from a backup, or missing commits were given up: earlier events from " +
      "after its position no longer count. Ids of the events that follow end in the restore's id.",
    data: Schema.Struct({
      restore_id: Schema.String.annotateKey(described("The restore's id.")),
      backup_id: Schema.String.annotateKey(
        described("The backup's id; empty where missing commits were given up."),
      ),
      made_at: Schema.String.annotateKey(
        described("When the backup was made, or the commits were given up, RFC 3339 in UTC."),
      ),
      position: Schema.Int.annotateKey(described("The last position that still counts.")),
      missing: Schema.optionalKey(
        Schema.Array(Schema.Struct({ from: Schema.Int, to: Schema.Int })).annotate(
          described("Positions of the commits that were given up, both ends included."),
        ),
      ),
    }),
  },
  token_issued: {
    ...token,
    when: "A token was issued.",
    data: Schema.Struct({
      name: Schema.String.annotateKey(described("The token's name; several may have the same.")),
      scopes: Schema.Array(Schema.String).annotateKey(described("Scopes of the blob service.")),
      roles: Schema.Array(Schema.String).annotateKey(described("Roles of share protection.")),
      expires_at: Schema.NullOr(Schema.String).annotateKey(
        described("Until when it holds, RFC 3339 in UTC; null: until it is revoked."),
      ),
    }),
  },
  token_revoked: {
    ...token,
    when: "A token was revoked: no process takes it any more.",
    data: Schema.Struct({ name: Schema.String.annotateKey(described("The token's name.")) }),
  },
  webhook_created: {
    ...webhook,
    when: "A webhook was made.",
    data: Schema.Struct({
      webhook_id,
      is_enabled: Schema.Boolean.annotateKey(described("Whether it delivers from the start.")),
    }),
  },
  webhook_changed: {
    ...webhook,
    when: "A webhook's owner changed what it sends, or where to.",
    data: Schema.Struct({
      webhook_id,
      changed: Schema.Array(Schema.String).annotateKey(
        described("Names of the fields that have another value from here on."),
      ),
    }),
  },
  webhook_enabled: {
    ...webhook,
    when: "A webhook delivers again, from where it stopped.",
    data: Schema.Struct({ webhook_id }),
  },
  webhook_paused: {
    ...webhook,
    when: "A webhook waits, since its owner wants it to.",
    data: Schema.Struct({ webhook_id }),
  },
  webhook_disabled: {
    ...webhook,
    when: "A webhook was disabled: its address is gone, or accepted nothing for days.",
    data: Schema.Struct({
      webhook_id,
      reason: DisableReason.annotateKey(described("Why.")),
      detail: Schema.String.annotateKey(described("What was so at the last try, in words.")),
    }),
  },
  webhook_secret_rotated: {
    ...webhook,
    when: "A webhook got a new secret.",
    data: Schema.Struct({
      webhook_id,
      previous_until: Schema.String.annotateKey(
        described("Until when the secret before signs too, RFC 3339 in UTC."),
      ),
    }),
  },
  webhook_deleted: {
    ...webhook,
    when: "A webhook was deleted.",
    data: Schema.Struct({ webhook_id }),
  },
} as const satisfies PublishedTypes
