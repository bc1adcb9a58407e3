/**
 * Tenants that use one server concurrently: they register targets, define policies with a backup
 * every minute, and request, cancel, retry and delete backups. No two clients use the same share or
 * target.
 */
import assert from "node:assert/strict"
import { randomUUID } from "node:crypto"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { type Seeded, seeded } from "../../world/seeded.ts"
import { connect, NoAnswer, responseText } from "../../world/server/client.ts"
import type { Server } from "../../world/server/server.ts"
import {
  type Caller,
  type Clients,
  type Known,
  type Request,
  request,
  sent,
} from "../../world/server/share-request.ts"

export const tenants = ["tenant", "tenant_b"] as const
type Tenant = (typeof tenants)[number]

/** Clients per tenant, and shares per client. */
const clients_per_tenant = 3
const shares_per_client = 2

/** States of a subject, in addition to `undefined`, which means absent. */
export const present = "present"
export const open = "open"
export const failed = "failed"

/** The resources that one client uses. */
export interface Yard {
  readonly tenant: Tenant
  /** The target of all its backups. */
  readonly target: string
  /** The body that registers a target of this tenant. */
  readonly target_body: object
  readonly shares: ReadonlyArray<Share>
  /** A share that is never backed up. */
  readonly idle_share_id: string
}

interface Share {
  readonly id: string
  /** All its policies and backups so far, by the clients' names. */
  readonly policies: Array<string>
  readonly backups: Array<string>
  /** The last requested backup, and the name of its request. */
  last?: { readonly request: Request; readonly name: string; readonly subject: string }
}

export const connected = ({ url, credentials }: Server): Clients => ({
  tenant: connect(url, credentials.tenant.token),
  tenant_b: connect(url, credentials.tenant_b.token),
  admin: connect(url, credentials.admin.token),
})

export const closeAll = (clients: Clients) => {
  for (const client of Object.values(clients)) client.close()
}

/** Trusts, secrets and shares, and the clients that use them. */
export const makeYards = async (server: Server, clients: Clients) => {
  const yards: Array<Yard> = []
  for (const tenant of tenants) {
    const target_body = await targetBody(server, clients, tenant)
    for (let n = 1; n <= clients_per_tenant; n++) {
      const shares = Array.from({ length: shares_per_client }, () => makeShare(server, tenant))
      const idle_share_id = makeShare(server, tenant).id
      yards.push({ tenant, target: `target-${tenant}-${n}`, target_body, shares, idle_share_id })
    }
  }
  return yards
}

const targetBody = async ({ credentials }: Server, { admin }: Clients, tenant: Tenant) => {
  const { project_id, user_id } = credentials[tenant]
  const trust = { project_id, user_id, roles: ["member"] }
  const { trust_id } = await admin.json<{ trust_id: string }>("POST", "/v1/admin/trusts", trust)
  const hrefOf = async (name: string) => {
    const secret = { project_id, name, payload: `the ${name} of ${tenant}` }
    return (await admin.json<{ href: string }>("POST", "/v1/admin/secrets", secret)).href
  }
  const vault_secret_map = {
    access_key: await hrefOf("access key"),
    secret_key: await hrefOf("secret key"),
  }
  return { endpoint: "https://s3.example.org", bucket: "backups", trust_id, vault_secret_map }
}

/** A share is a folder. */
const makeShare = ({ data_dir, credentials }: Server, tenant: Tenant): Share => {
  const id = randomUUID()
  const folder = join(data_dir, "shares", credentials[tenant].project_id, id)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, "file.txt"), id)
  return { id, policies: [], backups: [] }
}

interface Work {
  readonly known: Known
  readonly clients: Clients
  readonly random: Seeded
  readonly yard: Yard
  readonly is_over: () => boolean
}

const idOf = ({ ids }: Known, subject: string) => {
  const id = ids.get(subject)
  assert(id !== undefined, `${subject} has an id`)
  return id
}

const registerTarget = (work: Work, subject: string) =>
  request(work, {
    done: "TargetCreated",
    subject,
    after: present,
    as: work.yard.tenant,
    method: "POST",
    path: "/v1/targets",
    status: 202,
    body: { name: subject, ...work.yard.target_body },
  })

const deleteTarget = (work: Work, subject: string) =>
  request(work, {
    done: "TargetDeleted",
    subject,
    after: undefined,
    as: work.yard.tenant,
    method: "DELETE",
    path: `/v1/targets/${idOf(work.known, subject)}`,
    status: 204,
  })

const definePolicy = (work: Work, share: Share) => {
  const { known, yard } = work
  const subject = `policy-${known.next++}`
  share.policies.push(subject)
  const body = {
    name: subject,
    share_id: share.id,
    target_id: idOf(known, yard.target),
    schedule: "* * * * *",
    retention: { keep_last: 3 },
  }
  return request(work, {
    done: "PolicyDefined",
    subject,
    after: present,
    as: yard.tenant,
    method: "POST",
    path: "/v1/policies",
    body,
    status: 201,
  })
}

const deletePolicy = (work: Work, subject: string) =>
  request(work, {
    done: "PolicyDeleted",
    subject,
    after: undefined,
    as: work.yard.tenant,
    method: "DELETE",
    path: `/v1/policies/${idOf(work.known, subject)}`,
    status: 204,
    refused: ["svc.policy_has_inflight_backup"],
  })

const requestBackup = async (work: Work, share: Share, policy: string | undefined) => {
  const { known, yard } = work
  const subject = `backup-${known.next++}`
  share.backups.push(subject)
  const policy_id = policy === undefined ? {} : { policy_id: idOf(known, policy) }
  const body = { share_id: share.id, target_id: idOf(known, yard.target), ...policy_id }
  const query: Request = {
    done: "BackupRequested",
    subject,
    after: open,
    as: yard.tenant,
    method: "POST",
    path: "/v1/backups",
    body,
    status: 202,
    refused: ["svc.conflict"],
  }
  const name = await request(work, query)
  if (name !== undefined) share.last = { request: query, name, subject }
  else if (!known.ledger.isInDoubt(subject)) await findScheduled(work, share)
}

const cancelBackup = (work: Work, subject: string) => {
  const as: Caller = work.random.next() < 0.5 ? "admin" : work.yard.tenant
  const place = as === "admin" ? "/v1/admin/jobs" : "/v1/jobs"
  const job = work.known.jobs.get(subject)
  return request(work, {
    done: "JobCancelled",
    subject,
    after: failed,
    as,
    method: "POST",
    path: `${place}/${job}/cancel`,
    status: 202,
  })
}

/** The schedule may have started a backup of the share meanwhile. */
const retryBackup = async (work: Work, share: Share, subject: string) => {
  const job = work.known.jobs.get(subject)
  await request(work, {
    done: "JobRetried",
    subject,
    after: open,
    as: "admin",
    refused: ["svc.conflict"],
    method: "POST",
    path: `/v1/admin/jobs/${job}/retry`,
    status: 202,
  })
  const is_refused = work.known.ledger.stateOf(subject) === failed
  if (is_refused && !work.known.ledger.isInDoubt(subject)) await findScheduled(work, share)
}

const deleteBackup = (work: Work, subject: string) =>
  request(work, {
    done: "BackupDeleted",
    subject,
    after: undefined,
    as: work.yard.tenant,
    method: "DELETE",
    path: `/v1/backups/${idOf(work.known, subject)}`,
    status: 204,
  })

/** The same request again returns the same backup. */
const askAgain = async ({ known, clients, is_over }: Work, { last }: Share) => {
  if (last === undefined || known.ledger.stateOf(last.subject) === undefined) return
  try {
    const answer = await sent(last.request, clients, last.name)
    if (answer.status === 503 && is_over()) return
    assert.equal(answer.status, 202, `${last.name} again: ${responseText(answer)}`)
    const { backup } = JSON.parse(answer.body.toString())
    assert.equal(backup.id, known.ids.get(last.subject), `${last.name} made another backup`)
  } catch (cause) {
    if (!(cause instanceof NoAnswer && is_over())) throw cause
  }
}

/** Adopts a backup that the schedule started as one of the client's. */
const findScheduled = async ({ known, clients, yard, is_over }: Work, share: Share) => {
  try {
    const path = `/v1/backups?share_id=${share.id}&limit=1000`
    const { backups } = await clients[yard.tenant].json<Backups>("GET", path)
    const own = new Set(share.backups.map((subject) => known.ids.get(subject)))
    for (const { id, job_id, status } of backups) {
      if (own.has(id) || share.backups.some((subject) => known.ledger.isInDoubt(subject))) continue
      assert(status === "creating" || status === "queued", `${id} of the schedule is ${status}`)
      const subject = `backup-${known.next++}`
      share.backups.push(subject)
      known.ids.set(subject, id)
      known.jobs.set(subject, job_id)
      known.ledger.states.set(subject, open)
    }
  } catch (cause) {
    if (!is_over()) throw cause
  }
}

interface Backups {
  readonly backups: ReadonlyArray<{
    readonly id: string
    readonly job_id: string
    readonly status: string
  }>
}

/** A random one of them in this state. */
const oneOf = ({ known, random }: Work, subjects: ReadonlyArray<string>, state: string) => {
  const found = subjects.filter((subject) => known.ledger.stateOf(subject) === state)
  return found[random.between(0, found.length - 1)]
}

const onShare = async (work: Work, share: Share) => {
  const chance = work.random.next()
  const running = oneOf(work, share.backups, open)
  const ended = oneOf(work, share.backups, failed)
  const policy = oneOf(work, share.policies, present)
  if (chance < 0.1) {
    await (policy === undefined ? definePolicy(work, share) : deletePolicy(work, policy))
  } else if (chance < 0.2) await askAgain(work, share)
  else if (chance < 0.25) await findScheduled(work, share)
  else if (running !== undefined) await cancelBackup(work, running)
  else if (ended !== undefined && chance < 0.4) await retryBackup(work, share, ended)
  else if (ended !== undefined && chance < 0.6) await deleteBackup(work, ended)
  else await requestBackup(work, share, chance < 0.8 ? policy : undefined)
}

const client = async (work: Work) => {
  const { known, yard, random, is_over } = work
  const spare = `${yard.target}-spare`
  if (known.ledger.stateOf(yard.target) === undefined) await registerTarget(work, yard.target)
  while (!is_over()) {
    const share = yard.shares[random.between(0, yard.shares.length - 1)]
    assert(share !== undefined, "a client has shares")
    if (random.next() < 0.9) await onShare(work, share)
    else await onSpare(work, spare)
  }
}

/** Creates and deletes a target without backups; each one is new. */
const onSpare = async (work: Work, spare: string) => {
  const { ids, ledger } = work.known
  if (ledger.stateOf(spare) === present) return await deleteTarget(work, spare)
  ids.delete(spare)
  return await registerTarget(work, spare)
}

/** Starts every client; `stop` ends them, and fails on the first error. */
export const startTenants = (
  server: Server,
  known: Known,
  yards: ReadonlyArray<Yard>,
  seed: number,
) => {
  const clients = connected(server)
  let is_over = false
  let failure: unknown
  const all = yards.map((yard, n) =>
    client({
      known,
      clients,
      yard,
      random: seeded(seed * 1_000 + n),
      is_over: () => is_over || failure !== undefined,
    }).catch((cause: unknown) => {
      failure ??= cause
    }),
  )
  return {
    /** From here on, clients ignore missing responses. */
    over: () => {
      is_over = true
    },
    check: () => {
      if (failure !== undefined) throw failure
    },
    stop: async () => {
      is_over = true
      await Promise.all(all)
      closeAll(clients)
      if (failure !== undefined) throw failure
    },
  }
}
