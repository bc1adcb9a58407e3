/** The API's responses to an operator: an active fleet, an offline node, a job's history. */
import type {
  AuditCommit,
  AuditEvent,
  ClusterMetrics,
  Coverage,
  Job,
  Rollout,
  Target,
  Worker,
} from "../../../../web/console/api.ts"
import { canned_now } from "../canned.ts"

export const ago = (seconds: number) =>
  new Date(canned_now.getTime() - seconds * 1000).toISOString()
/** A UUIDv7 that ends in `n`. */
export const uuid = (n: number) => `01a20000-0000-7000-8000-${String(n).padStart(12, "0")}`

const job = (n: number, more: Partial<Job>): Job => ({
  id: uuid(n),
  job_type: "backup",
  project_id: uuid(900),
  resource_type: "backup",
  resource_id: uuid(n + 50),
  target_id: uuid(800),
  share_id: uuid(700),
  state: "available",
  progress: 100,
  bytes_done: 5_000_000,
  bytes_total: 5_000_000,
  worker_id: uuid(600),
  attempt: 1,
  error: null,
  error_category: null,
  started_at: ago(3000),
  finished_at: ago(2000),
  created_at: ago(3100),
  updated_at: ago(2000),
  ...more,
})

export const running = job(9, {
  state: "transferring",
  progress: 42,
  bytes_done: 420_000_000,
  bytes_total: 1_000_000_000,
  finished_at: null,
  started_at: ago(95),
  created_at: ago(100),
  updated_at: ago(1),
})

export const jobs: readonly Job[] = [
  running,
  job(8, { ...running, id: uuid(8), state: "queued", started_at: null, progress: 0 }),
  job(7, {
    job_type: "target_enroll",
    share_id: null,
    resource_type: "target",
    state: "error",
    error: { code: "svc.target_preflight_failed", detail: "read_write: no such bucket." },
    error_category: "tenant_action_required",
    updated_at: ago(5000),
  }),
  ...Array.from({ length: 120 }, (_, n) => job(300 - n, { job_type: "retention" })),
]

const worker = (n: number, more: Partial<Worker>): Worker => ({
  id: uuid(n),
  hostname: `worker-${n}`,
  state: "ready",
  domain_id: null,
  image_version: "agent-2",
  engine_version: "0.19.1",
  capacity_slots: 4,
  running_jobs: 2,
  heartbeat_at: ago(3),
  updated_at: ago(600),
  ...more,
})

export const workers: readonly Worker[] = [
  worker(600, {}),
  worker(601, { image_version: "agent-1" }),
  worker(602, { state: "draining", image_version: "agent-1" }),
  worker(603, { state: "booting", hostname: null, running_jobs: 0, heartbeat_at: null }),
  worker(604, { state: "dead", updated_at: ago(1800), domain_id: uuid(950) }),
  worker(605, { domain_id: uuid(950) }),
]

export const rollouts: readonly Rollout[] = [
  {
    id: uuid(500),
    image: "agent-0",
    domain_ids: [uuid(950)],
    state: "succeeded",
    current_domain_id: null,
    replaced_workers: 3,
    reason: null,
    created_at: ago(900_000),
    updated_at: ago(800_000),
  },
  {
    id: uuid(501),
    image: "agent-2",
    domain_ids: [uuid(950), uuid(951)],
    state: "halted",
    current_domain_id: uuid(951),
    replaced_workers: 1,
    reason: "The new worker did not register within 300 s.",
    created_at: ago(7200),
    updated_at: ago(3600),
  },
]

const share = (n: number, more: Partial<Coverage>): Coverage => ({
  share_id: uuid(n),
  project_id: uuid(900),
  policy_id: uuid(n + 10),
  target_id: uuid(800),
  protected: true,
  backup_count: 7,
  last_backup_at: ago(3600),
  last_proven_restorable: { proven_at: ago(90_000) },
  restore_test_failure: null,
  ...more,
})

export const coverage: readonly Coverage[] = [
  share(700, {}),
  share(701, { last_backup_at: ago(500_000), backup_count: 2, last_proven_restorable: null }),
  share(702, {
    restore_test_failure: { failed_at: ago(4000), reason: "A pack is missing." },
  }),
  share(703, {
    protected: false,
    policy_id: null,
    backup_count: 0,
    last_backup_at: null,
    last_proven_restorable: null,
  }),
]

export const targets: readonly Target[] = [
  {
    id: uuid(800),
    name: "frankfurt",
    bucket: "backups-1",
    status: "available",
    reason: null,
    usage_stats: {
      stored_bytes: 9_000_000_000,
      noncurrent_bytes: 12_000_000,
      objects: 41_233,
      measured_at: ago(1200),
    },
  },
  {
    id: uuid(801),
    name: "wrong",
    bucket: "nowhere",
    status: "error",
    usage_stats: null,
    reason: "read_write: no such bucket.",
  },
]

const node = (n: number, more: object = {}): ClusterMetrics["nodes"][number] => ({
  node_id: `node-${n}`,
  address: `10.0.0.${n}:9797`,
  state: "active",
  capacity_bytes: 8_000_000_000,
  used_bytes: n * 1_000_000_000,
  blob_count: n * 1000,
  ring_share: 0.2,
  pending_migrations: 0,
  under_replicated: 0,
  replication_failures: 0,
  repairs: n,
  last_heartbeat_at: (canned_now.getTime() - 2000) * 1_000_000,
  ...more,
})

export const cluster: ClusterMetrics = {
  ring_version: 9,
  vnodes_per_node: 128,
  pending_migrations: 5000,
  bytes_moved: 7_000_000,
  repairs: 21,
  replication_failures: 0,
  under_replicated: 17,
  nodes: [
    node(1, { ring_share: 0.24 }),
    node(2),
    node(3, { ring_share: 0.16 }),
    node(4),
    node(5, { state: "leaving", ring_share: 0, pending_migrations: 5000 }),
    node(6, { state: "offline", ring_share: 0, under_replicated: 17 }),
    node(7, { used_bytes: 7_500_000_000 }),
  ],
}

/** `position` counts down from the newest; the last two thirds are a day older. */
export const auditEvents: readonly AuditEvent[] = Array.from({ length: 230 }, (_, n) => {
  const position = 1000 - n
  const is_today = n < 80
  return {
    position,
    index: 0,
    at: ago(is_today ? n * 60 : 86_400 + n * 60),
    service: "share-protection",
    aggregate: "job",
    id: uuid(9),
    subject: uuid(9),
    type: n % 5 === 0 ? "JobFailed" : "JobAdvanced",
    actor: "worker:one",
    request_id: `request-${position}`,
    data: { to: "transferring", fence: n },
  }
})

const step = (
  position: number,
  event: Readonly<Record<string, unknown>>,
  value: string,
  context: object,
): AuditCommit => ({
  position,
  at: ago(200 - position),
  actor: "worker:one",
  events: [event],
  snapshot: { machine: 1, value, context },
  command_id: `command-${position}`,
  ...(position === 10 && { request_id: "request-10", correlation_id: "chain-10" }),
})

const queued = { job_type: "backup", worker_id: null, fence: null, attempt: 1, error: null }
const taken = { ...queued, worker_id: uuid(600), fence: 3 }

/** The history of the running job. */
export const past: readonly AuditCommit[] = [
  step(10, { type: "JobQueued", job_type: "backup" }, "queued", queued),
  step(12, { type: "JobAssigned", worker_id: uuid(600), fence: 3 }, "queued", taken),
  step(15, { type: "JobStarted", fence: 3 }, "provisioning_network", { ...taken, started: true }),
  step(17, { type: "JobAdvanced", to: "provisioning_source" }, "provisioning_source", {
    ...taken,
    started: true,
  }),
  step(18, { type: "JobFailed", code: "svc.engine" }, "error", {
    ...taken,
    started: true,
    error: { code: "svc.engine", detail: "No route to the share." },
  }),
]
