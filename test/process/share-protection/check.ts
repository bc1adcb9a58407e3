/**
 * Invariants of share protection after its server was killed at any moment: each acknowledged
 * request took effect once, and lists, counts, the log and subscribers agree.
 */
import assert from "node:assert/strict"
import { type AuditEvent, auditEvents, publishedEvents } from "../../world/server/history.ts"
import { readModelsEqualRebuilt } from "../../world/server/read-models.ts"
import { runVerb, type Server } from "../../world/server/server.ts"
import { foldedBy, ticksIn } from "../../world/server/share-records.ts"
import type { Caller, Clients, Known } from "../../world/server/share-request.ts"
import { closeAll, connected, failed, open, present, tenants, type Yard } from "./load.ts"

const page_limit = 1_000

type Tenant = (typeof tenants)[number]

interface Item {
  readonly id: string
  readonly status?: string
  readonly state?: string
  readonly policy_id?: string | null
  readonly resource_id?: string
}

interface Page {
  readonly pagination: { readonly next_marker: string | null }
}

/** Every item of a collection, page by page, without duplicates. */
const listed = async (clients: Clients, as: Caller, noun: string) => {
  const items: Array<Item> = []
  let marker: string | null = null
  do {
    const query: string = marker === null ? "" : `&marker=${marker}`
    const path = `/v1/${noun}?limit=${page_limit}${query}`
    const page: Page & Readonly<Record<string, ReadonlyArray<Item>>> = await clients[as].json(
      "GET",
      path,
    )
    items.push(...(page[noun] ?? []))
    marker = page.pagination.next_marker
  } while (marker !== null)
  const byId = new Map(items.map((item) => [item.id, item]))
  assert.equal(byId.size, items.length, `${noun}: an id is listed twice`)
  return byId
}

/** Repeats every request with an unknown outcome. */
const settle = async ({ ledger, again }: Known, clients: Clients) => {
  for (const subject of [...ledger.doubts.keys()]) {
    ledger.resolve(subject, await again.get(subject)?.(clients))
    again.delete(subject)
  }
}

type Listed = Readonly<Record<Noun, ReadonlyMap<string, Item>>>
type Noun = "targets" | "policies" | "backups" | "jobs"

const listsOf = async (clients: Clients, as: Tenant): Promise<Listed> => ({
  // Backups before jobs, because the schedule creates both at once.
  backups: await listed(clients, as, "backups"),
  targets: await listed(clients, as, "targets"),
  policies: await listed(clients, as, "policies"),
  jobs: await listed(clients, as, "jobs"),
})

const isOpen = (backup: Item | undefined, job: Item | undefined) =>
  (backup?.status === "creating" || backup?.status === "queued") && job?.state === "queued"

const checkBackup = (known: Known, subject: string, { backups, jobs }: Listed) => {
  const state = known.ledger.stateOf(subject)
  const backup = backups.get(known.ids.get(subject) ?? "")
  const job = jobs.get(known.jobs.get(subject) ?? "")
  const description = `${subject}, which is ${state}: ${JSON.stringify({ backup, job })}`
  if (state === undefined) assert(backup === undefined, description)
  if (state === open) assert(isOpen(backup, job), description)
  if (state === failed) assert(backup?.status === "error" && job?.state === "error", description)
}

/** Each list contains the items known to the tenant's clients, plus only the schedule's backups. */
const checkLists = (known: Known, yards: ReadonlyArray<Yard>, lists: Listed) => {
  const subjects = {
    targets: yards.flatMap(({ target }) => [target, `${target}-spare`]),
    policies: yards.flatMap(({ shares }) => shares.flatMap(({ policies }) => policies)),
  }
  for (const noun of ["targets", "policies"] as const) {
    const there = subjects[noun].filter((subject) => known.ledger.stateOf(subject) === present)
    const ids = there.map((subject) => known.ids.get(subject) ?? subject)
    assert.deepEqual([...lists[noun].keys()].toSorted(), ids.toSorted(), `the list of ${noun}`)
  }
  const backups = yards.flatMap(({ shares }) => shares.flatMap(({ backups }) => backups))
  for (const subject of backups) checkBackup(known, subject, lists)
  const own = new Set(backups.map((subject) => known.ids.get(subject)))
  const others = [...lists.backups.values()].filter(({ id }) => !own.has(id))
  for (const { id, policy_id } of others) {
    assert(policy_id, `backup ${id} is listed, and neither a client nor a schedule asked for it`)
  }
}

/** Resolves all doubts and checks every tenant's lists. */
export const checkRound = async (server: Server, known: Known, yards: ReadonlyArray<Yard>) => {
  const clients = connected(server)
  try {
    await settle(known, clients)
    for (const tenant of tenants) {
      const own = yards.filter((yard) => yard.tenant === tenant)
      checkLists(known, own, await listsOf(clients, tenant))
    }
  } finally {
    closeAll(clients)
  }
}

/** Pauses the conductor's schedule. */
export const pauseSchedule = async (server: Server) => {
  const clients = connected(server)
  const answer = await clients.admin.ask("POST", "/v1/admin/scheduling/pause")
  assert(answer.status < 300, "the schedule is paused")
  const lists = await listsOf(clients, "tenant")
  closeAll(clients)
  return lists
}

/** Each request that took effect is in the log once, and no other request is. */
const checkRequests = (events: ReadonlyArray<AuditEvent>, { ledger }: Known) => {
  const counts = new Map<string, number>()
  for (const { type, correlation_id } of events) {
    const key = `${correlation_id} ${type}`
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  for (const operation of ledger.operations) {
    const { name, subject } = operation
    const [type] = name.split("-")
    const times = counts.get(`${name} ${type}`) ?? 0
    assert.equal(times, ledger.timesDone(operation), `${name} on ${subject}: times in the log`)
  }
}

/** Each backup belongs to a client or a schedule, which takes or skips each of its ticks once. */
const checkTicks = (events: ReadonlyArray<AuditEvent>, { ledger }: Known) => {
  const by_clients = ledger.operations.filter(
    (operation) => operation.name.startsWith("BackupRequested-") && ledger.timesDone(operation) > 0,
  )
  const taken = events.filter(
    ({ type, data }) => type === "ShareBackupStarted" && data.tick !== null,
  )
  const requested = events.filter(({ type }) => type === "BackupRequested")
  assert.equal(requested.length, by_clients.length + taken.length, "backups that were asked for")
  const ticks = ticksIn(events)
  assert.deepEqual([...new Set(ticks)], ticks, "a tick was taken or skipped twice")
  return ticks.length
}

/** Published events of share protection, by their names in document 2. */
const published_as: Readonly<Record<string, string>> = {
  TargetCreated: "target_created",
  TargetDeleted: "target_deleted",
  PolicyDefined: "policy_created",
  PolicyDeleted: "policy_deleted",
  TickSkipped: "scheduled_backup_skipped",
  BackupRequested: "backup_requested",
  BackupFailed: "backup_failed",
  BackupDeleted: "backup_deleted",
  JobQueued: "job_queued",
  JobCancelled: "job_cancelled",
  JobRetried: "job_retried",
  ReconciliationFinished: "reconciliation_finished",
  SchedulerPaused: "scheduler_paused",
}

/** Subscribers receive each of them once, in log order. */
const checkPublished = async (
  { admin }: Clients,
  events: ReadonlyArray<AuditEvent>,
): Promise<number> => {
  const wanted = events.flatMap(({ position, index, type }) =>
    published_as[type] === undefined ? [] : [`${position}.${index} ${published_as[type]}`],
  )
  const published = await publishedEvents(admin, wanted.length)
  const delivered = published.map(({ event: { id, type } }) => `${id} ${type}`)
  assert.deepEqual(delivered, wanted, "the published events differ from the log")
  assert.deepEqual(
    published.map(({ sequence }) => sequence),
    published.map((_, n) => n + 1),
    "published events are not numbered one by one",
  )
  return published.length
}

/**
 * The ledger matches the lists: with quotas equal to the counts, every further request is rejected.
 */
const checkQuotas = async (clients: Clients, known: Known, yards: ReadonlyArray<Yard>) => {
  const yard = yards.find(({ tenant }) => tenant === "tenant")
  assert(yard, "a tenant has a client")
  const place = { share_id: yard.idle_share_id, target_id: known.ids.get(yard.target) }
  const policy = { name: "One more", schedule: "* * * * *", retention: { keep_last: 3 } }
  const requests: ReadonlyArray<readonly [string, object]> = [
    ["/v1/targets", { name: "One more", ...yard.target_body }],
    ["/v1/policies", { ...policy, ...place }],
    ["/v1/backups", place],
  ]
  for (const [path, body] of requests) {
    const headers = { "content-type": "application/json" }
    const more = { headers, body: JSON.stringify(body) }
    const answer = await clients.tenant.ask("POST", path, more)
    const { code } = JSON.parse(answer.body.toString())
    assert.equal(code, "svc.quota_exceeded", `${path}: one more than are listed`)
  }
}

/** Counts of the checked items, for the log line. */
export interface SharesChecked {
  readonly events: number
  readonly published: number
  readonly ticks: number
  readonly backups: number
}

/** Checks everything while the system is idle; fails on the first violation. */
export const checkShares = async (
  server: Server,
  known: Known,
  yards: ReadonlyArray<Yard>,
): Promise<SharesChecked> => {
  const clients = connected(server)
  try {
    await checkRound(server, known, yards)
    await checkQuotas(clients, known, yards)
    const all = await auditEvents(clients.admin, [])
    const events = all.filter(({ service }) => service === "share-protection")
    checkRequests(events, known)
    const ticks = checkTicks(events, known)
    const { ledgers, backups } = foldedBy(events)
    for (const tenant of tenants) {
      const lists = await listsOf(clients, tenant)
      const counts = {
        targets: lists.targets.size,
        policies: lists.policies.size,
        backups: lists.backups.size,
        templates: 0,
      }
      const ledger = ledgers.get(server.credentials[tenant].project_id)
      assert.deepEqual(ledger, counts, `the ledger of ${tenant}`)
    }
    const published = await checkPublished(clients, events)
    const verified = await runVerb(server.data_dir, ["audit", "verify"])
    assert.equal(verified.code, 0, `audit verify: ${verified.stdout}\n${verified.stderr}`)
    await readModelsEqualRebuilt(clients.admin, server.data_dir)
    return { events: events.length, published, ticks, backups: backups.size }
  } finally {
    closeAll(clients)
  }
}
