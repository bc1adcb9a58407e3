/**
 * The parts of the API's responses that the console reads. The page imports no server code; a test
 * checks that the server's responses have these types.
 */

export interface Job {
  readonly id: string
  readonly job_type: string
  readonly project_id: string | null
  readonly resource_type: string
  readonly resource_id: string
  readonly target_id: string
  readonly share_id: string | null
  readonly state: string
  readonly progress: number
  readonly bytes_done: number | null
  readonly bytes_total: number | null
  readonly worker_id: string | null
  readonly attempt: number
  readonly error: { readonly code: string; readonly detail: string } | null
  readonly error_category: string | null
  readonly started_at: string | null
  readonly finished_at: string | null
  readonly created_at: string
  readonly updated_at: string
}

export interface Worker {
  readonly id: string
  readonly hostname: string | null
  readonly state: string
  readonly domain_id: string | null
  readonly image_version: string | null
  readonly engine_version: string | null
  readonly capacity_slots: number | null
  readonly running_jobs: number
  readonly heartbeat_at: string | null
  readonly updated_at: string
}

export interface Rollout {
  readonly id: string
  readonly image: string
  readonly domain_ids: readonly string[]
  readonly state: "running" | "succeeded" | "halted"
  readonly current_domain_id: string | null
  readonly replaced_workers: number
  readonly reason: string | null
  readonly created_at: string
  readonly updated_at: string
}

export interface Coverage {
  readonly share_id: string
  readonly project_id: string
  readonly policy_id: string | null
  readonly target_id: string | null
  readonly protected: boolean
  readonly backup_count: number
  readonly last_backup_at: string | null
  readonly last_proven_restorable: { readonly proven_at: string } | null
  readonly restore_test_failure: { readonly failed_at: string; readonly reason: string } | null
}

/** Accepts both shapes, which name the bucket differently. */
export interface Target {
  readonly id: string
  readonly name: string
  readonly bucket?: string
  readonly bucket_name?: string
  readonly status: string
  readonly reason: string | null
  readonly usage_stats: {
    readonly stored_bytes: number
    readonly noncurrent_bytes: number
    readonly objects: number
    readonly measured_at: string
  } | null
}

/** A 64-bit integer, which the server sends as a string if its `json.int64` is "string". */
type Int64 = number | string

export interface ClusterNode {
  readonly node_id: string
  readonly address: string
  readonly state: string
  readonly capacity_bytes: Int64
  readonly used_bytes: Int64
  readonly blob_count: Int64
  readonly ring_share: number
  readonly pending_migrations: Int64
  readonly under_replicated: Int64
  readonly replication_failures: Int64
  readonly repairs: Int64
  /** Unix nanoseconds. */
  readonly last_heartbeat_at?: Int64
}

export interface ClusterMetrics {
  readonly ring_version: Int64
  readonly vnodes_per_node: number
  readonly pending_migrations: Int64
  readonly bytes_moved: Int64
  readonly repairs: Int64
  readonly replication_failures: Int64
  readonly under_replicated: Int64
  readonly nodes: readonly ClusterNode[]
}

export interface LogUsage {
  /** Increases: each generation starts with the latest snapshots of the previous one. */
  readonly generation: number
  readonly aggregates: number
  readonly bytes: number
  readonly limit_bytes: number | null
  /** 0 to 1; null without a limit. */
  readonly used_share: number | null
}

export interface ReadModels {
  readonly read_models: readonly {
    readonly name: string
    readonly position: number
    readonly behind: number
  }[]
}

export interface AuditEvent {
  readonly position: number
  readonly index: number
  readonly at: string
  readonly service: string
  readonly aggregate: string
  readonly id: string
  readonly subject: string
  readonly type: string
  readonly actor: string
  readonly request_id?: string
  readonly correlation_id?: string
  readonly cause?: string
  readonly data: unknown
}

export interface Scheduling {
  readonly paused: boolean
  readonly paused_at: string | null
  readonly next_run: string | null
}

export interface Reconciliation {
  readonly status: "idle" | "running"
  readonly last_run_at: string | null
  readonly next_run_at: string | null
  readonly drift_count: number
}

export interface AuditPage {
  readonly events: readonly AuditEvent[]
  readonly next_marker?: string
  readonly position: number
}

export interface Snapshot {
  readonly machine: number
  readonly value: unknown
  readonly context: unknown
}

export interface AuditCommit {
  readonly position: number
  readonly at: string
  readonly actor: string
  readonly request_id?: string
  readonly correlation_id?: string
  readonly cause?: string
  readonly events: readonly unknown[]
  readonly snapshot: Snapshot
  readonly command_id: string
}

export interface AuditHistory {
  readonly service: string
  readonly aggregate: string
  readonly id: string
  readonly commits: readonly AuditCommit[]
  readonly next_marker?: string
}

export interface AuditState {
  readonly position: number
  readonly state: Snapshot
}

export interface ChartState {
  readonly path: string
  readonly name: string
  readonly parent: string
  readonly kind: "atomic" | "compound" | "parallel" | "final"
  readonly is_initial: boolean
  readonly description: string | null
}

export interface ChartTransition {
  readonly from: string
  readonly to: string | null
  readonly event: string
  readonly guard: string
}

export interface Chart {
  readonly id: string
  readonly description: string | null
  readonly kind: ChartState["kind"]
  readonly states: readonly ChartState[]
  readonly transitions: readonly ChartTransition[]
}
