/**
 * Manila's access rules, which allow the workers' network (`manila.access_to`) to reach a share.
 *
 * A share's rule is not removed, because every job that reads the share needs it, so removing it
 * would affect other jobs. Source: decisions of document 2, identity, secrets, shares.
 */
import { Effect, Schema } from "effect"
import type { KeystoneSession } from "#adapters/keystone/session.ts"
import type { Access } from "#adapters/share-protection/share-mount.ts"
import { get, poll, refusal, sendAsService } from "#adapters/share-protection/shares/manila-api.ts"
import type { Settings } from "#schemas/settings.ts"
import { NetworkStrategyPrecondition } from "#schemas/share-protection/rejection.ts"

interface Manila {
  readonly session: KeystoneSession["Service"]
  readonly settings: Settings["manila"]
}

const Rule = Schema.Struct({
  id: Schema.String,
  access_to: Schema.String,
  state: Schema.String,
  access_level: Schema.optionalKey(Schema.String),
})
type Rule = typeof Rule.Type

const Rules = Schema.Record(Schema.String, Schema.Array(Rule))

/** Paths and the response field of the rules of a share or a snapshot. */
interface RulePaths {
  readonly action: string
  readonly list: string
  readonly key: string
}

/**
 * Allows the workers to read or write a share. Without `manila.access_to` access is already
 * allowed.
 */
export const allowAccess = Effect.fnUntraced(function* (manila: Manila, id: string, level: Access) {
  const { access_to } = manila.settings
  if (access_to === "") return
  const list = `/share-access-rules?share_id=${id}`
  const paths = { action: `/shares/${id}/action`, list, key: "access_list" }
  const allow_access = { access_type: "ip", access_to, access_level: level }
  const rule = yield* ensureRule(manila, paths, allow_access)
  if (level === "ro" || rule.access_level !== "ro") return
  // This microversion can neither change a rule's level nor have two rules for one network.
  const deny_access = { access_id: rule.id }
  yield* postAction(manila, paths, { deny_access })
  yield* poll(ruleOf(manila, paths), (seen) => seen === undefined, deadlineOf(manila))
  yield* ensureRule(manila, paths, allow_access)
})

/** Allows the workers to read a snapshot, which is always read-only. */
export const allowSnapshotAccess = Effect.fnUntraced(function* (manila: Manila, id: string) {
  const { access_to } = manila.settings
  if (access_to === "") return
  const list = `/snapshots/${id}/access-list`
  const paths = { action: `/snapshots/${id}/action`, list, key: "snapshot_access_list" }
  yield* ensureRule(manila, paths, { access_type: "ip", access_to })
})

const deadlineOf = ({ settings }: Manila) => settings.deadline_seconds

const postAction = (manila: Manila, { action }: RulePaths, body: object) =>
  sendAsService(manila.session, { method: "POST", path: action, body })

const ruleOf = (manila: Manila, { list, key }: RulePaths) =>
  Effect.map(get(manila.session, list, Rules), (lists) =>
    lists?.[key]?.find(({ access_to }) => access_to === manila.settings.access_to),
  )

const isSettled = (rule: Rule | undefined) =>
  rule === undefined || !/^(queued_to_apply|applying)$/.test(rule.state)

/** Manila returns 400 both for an existing rule and for one that it cannot apply. */
const ensureRule = Effect.fnUntraced(function* (
  manila: Manila,
  paths: RulePaths,
  allow_access: object,
) {
  const response = yield* postAction(manila, paths, { allow_access })
  if (response.status >= 400 && response.status !== 400) return yield* refusal(response)
  const rule = yield* poll(ruleOf(manila, paths), isSettled, deadlineOf(manila))
  if (rule?.state === "active") return rule
  const detail = `Manila did not grant access to ${manila.settings.access_to} (manila.access_to).`
  return yield* new NetworkStrategyPrecondition({ detail })
})
