/**
 * Descriptions of each chart and each of its states, in reading order, for docs/lifecycles.md and
 * for the console.
 */
import type { ChartTexts } from "#actors/chart.ts"

/** By the chart's id. */
export const chart_descriptions: Readonly<Record<string, ChartTexts>> = {
  "blob-storage.cluster": {
    description: "A cluster of nodes, and the version of its ring. Source: document 1 §3.",
    states: {
      unformed: "No node has joined yet.",
      formed: "The cluster has a ring and nodes; the next chart shows the states of one node.",
    },
  },
  "blob-storage.node": {
    description: "One node in its cluster. Source: document 1 §3 States and transitions.",
    states: {
      joining: "The node has been admitted and is not on the ring yet.",
      active: "The node is on the ring and receives new blobs.",
      offline: "No heartbeat arrived within the deadline. The node receives no new blobs.",
      leaving: "The node receives no new blobs, and its blobs move to other nodes.",
      left: "All its blobs are on other nodes. It may join again as a new member.",
      removed: "The node is no longer a member; its blobs were not moved. It may join again.",
    },
  },
  "blob-storage.volume": {
    description: "The blobs that one node holds, as far as its journal is in the log.",
    states: { open: "It records the node's journal, fact by fact." },
  },
  "share-protection.target-template": {
    description:
      "The location of a domain's buckets (Shape B). Source: document 2 §2 Target template.",
    states: {
      present: "Targets can be registered with it, and policies can refer to it.",
      deleted: "The record is deleted. Nothing referred to it.",
    },
  },
  "share-protection.target": {
    description: "A bucket with one repository in it. Source: document 2 §2 and §3 Target.",
    states: {
      present: "Enrollment and format are independent, with separate states.",
      "present.enrollment.pending":
        "The enrollment is queued or running (Shape B: enrolling). Other jobs stay queued.",
      "present.enrollment.available": "The repository exists: backups and restores can start.",
      "present.enrollment.error": "The enrollment failed; the target shows the reason.",
      "present.format.unknown": "The repository does not exist yet.",
      "present.format.settled": "The repository has a format and can be used.",
      "present.format.upgrading": "The format is being upgraded: no backup or restore starts.",
      deleted: "The record is deleted. The bucket's contents remain.",
    },
  },
  "share-protection.policy": {
    description: "A share's policy and its current backup. Source: document 2 §4 rule 3.",
    states: {
      "policy.none": "The share has no policy. Backups on demand are possible.",
      "policy.defined": "The share has a policy; it can have only one.",
      "backup.idle": "No backup of the share is in progress.",
      "backup.in_flight": "One backup of the share is in progress; a second one is rejected.",
    },
  },
  "share-protection.backup": {
    description: "One snapshot of a share. Source: document 2 §2 and §3 Backup.",
    states: {
      creating: "The backup was requested, and its target is not enrolled yet.",
      queued: "It waits for a worker.",
      running: "A worker is taking the snapshot.",
      available: "The snapshot is in the repository and can be restored.",
      error: "The backup failed or its snapshot was lost. Retrying its job repeats it.",
      expired: "Retention removed it: a tombstone that cannot be restored.",
      undeleting:
        "The tenant requested an undelete: a job checks whether the snapshot still exists.",
      deleted: "The record is deleted.",
    },
  },
  "share-protection.restore": {
    description: "Writes a backup's files to a share. Source: document 2 §2 Restore.",
    states: {
      pending: "The restore was requested and is not admitted yet.",
      queued: "It waits for a worker.",
      running: "A worker is writing the files.",
      available: "The files have been written. Final.",
      error: "The restore failed. Retrying its job repeats it.",
    },
  },
  "share-protection.job": {
    description: "One asynchronous operation that a worker runs. Source: document 2 §3 Job.",
    states: {
      queued:
        "It waits for its target, a free slot and the repository, then for a worker to accept it.",
      provisioning_network: "The worker has accepted the job and sets up access to the share.",
      provisioning_source: "The worker prepares the source: a snapshot if the share supports one.",
      connecting_repository: "The worker fetches the secrets and opens the repository.",
      transferring: "The engine transfers data and reports progress.",
      finalizing: "The worker verifies object locks and sizes.",
      releasing: "The worker removes what it prepared for this job.",
      available: "The job succeeded. Final.",
      error: "The job failed or was cancelled. It can only be retried.",
    },
  },
  "share-protection.lease": {
    description:
      "Readers and the writer of a repository. Source: document 2 §7 svc.repository_locked.",
    states: {
      open: "Held by any number of readers and one writer, or by one job exclusively.",
      closed: "The target is deleted. No job can hold it again.",
    },
  },
  "share-protection.worker": {
    description: "A machine whose agent runs jobs. Source: document 2 §3 Worker.",
    states: {
      booting: "The machine was requested, and its agent has not registered yet.",
      ready: "It accepts jobs while it has a free slot.",
      draining: "It accepts no new jobs; running ones finish.",
      retiring: "It is marked for deletion and is removed after its last job.",
      retired: "The machine has been removed.",
      dead: "It did not start, or its heartbeats stopped. Its jobs and leases are released.",
    },
  },
  "share-protection.fleet": {
    description: "Limits worker boots, holds the rollout. Source: document 2 §8 worker_boot_*.",
    states: { open: "It counts boots and their failures." },
  },
  "share-protection.rollout": {
    description:
      "Replaces workers that run an old image, one by one. Source: document 2 §6 and §9.",
    states: {
      running: "Domains are processed one by one, the canary first.",
      "running.between": "No worker is being replaced right now.",
      "running.replacing": "An old worker drains while a new one boots.",
      succeeded: "All domains are done.",
      halted: "A new worker did not start; the old one accepts jobs again.",
    },
  },
  "share-protection.domain": {
    description:
      "A domain's own settings. Source: document 2 §4, PATCH /v1/admin/domains/{domain_id}.",
    states: {
      applied: "The configured settings are in effect.",
      pending: "A change waits for the next reconciliation tick.",
    },
  },
  "share-protection.scheduler": {
    description: "Runs the schedules of policies. Source: document 2 §3 Scheduler.",
    states: {
      running: "Ticks start backups.",
      paused: "Ticks start no backups, and missed ones are not repeated.",
    },
  },
  "share-protection.reconciliation": {
    description: "Compares records with the real resources. Source: document 2 §2 and §4.",
    states: {
      idle: "It waits for the next tick.",
      asked: "An operator requested a run; it starts as soon as possible.",
      running: "Its loops run one after the other.",
    },
  },
  "share-protection.ledger": {
    description: "A project's use of its quotas. Source: document 2 §7 svc.quota_exceeded.",
    states: { open: "It counts targets, policies and backups." },
  },
  "capital-pressure.observation": {
    description: "A metric's published values of one year. Source: document 3 §2 A HistoryOut.",
    states: {
      real: "Values from a publisher. Revised values are kept as well.",
      demo: "Generated values. Real values are never mixed in.",
    },
  },
  "capital-pressure.price": {
    description: "A ticker's closes in one year. Source: document 3 §2 A WatchlistOut.",
    states: {
      real: "Prices from a publisher.",
      demo: "Generated data. Real data is never mixed in.",
    },
  },
  "capital-pressure.composite": {
    description: "The composite of each business day of a year. Source: document 3 §1 A.",
    states: { computed: "Each day has its latest computed value." },
  },
  "capital-pressure.feed": {
    description: "The ingest of a metric, of prices, or of the watchlist. Source: document 3 §2 A.",
    states: {
      never: "The source has not been requested yet.",
      ingested: "The last request succeeded.",
      failing: "The last request failed; earlier data is still shown.",
    },
  },
  "capital-pressure.schedule": {
    description: "A scheduled job, one run at a time. Source: document 3 §2 A SchedulerOut.",
    states: {
      idle: "It waits for its next tick.",
      running: "A run has started, and its result is not known yet.",
    },
  },
  "capital-pressure.watchlist": {
    description:
      "The operator's watchlist, replaced as a whole. Source: document 3 §2 A WatchlistOut.",
    states: {
      real: "Loaded from the operator's file.",
      demo: "Generated data. Real data is never mixed in.",
    },
  },
  "carrier-search.search": {
    description: "Searches that one node ran, as far as its spool is in the log.",
    states: { open: "It records the node's spool, fact by fact." },
  },
  "plant-disease.prediction": {
    description: "Predictions that one node made, as far as its spool is in the log.",
    states: { open: "It records the node's spool, fact by fact." },
  },
  "system.checkpoint": {
    description: "Sealed ranges of the log, which link the hash chains of all aggregates.",
    states: { open: "Each range continues the one before." },
  },
  "system.election": {
    description:
      "The leader of a task that only one process may run. The event's position is the fence.",
    states: { open: "One leader succeeds another." },
  },
  "system.generation": {
    description: "The streams of the log; each begins with the last state of every aggregate.",
    states: { open: "Each generation continues the one before." },
  },
  "system.probe": {
    description: "Commits that prove the log accepts commits while nothing else writes to it.",
    states: { open: "One probe follows another." },
  },
  "system.publication": {
    description: "Anchors of the numbering of published events. Source: decision 0172.",
    states: { open: "Each anchor is at a later position than the one before, or has other types." },
  },
  "system.quarantine": {
    description: "The position up to which an operator has acknowledged unreadable commits.",
    states: { open: "Each acknowledgement reaches further than the one before." },
  },
  "system.restoration": {
    description: "Restores of the log from a backup. Source: issue 10, deploy.",
    states: { open: "Each restore has more of the log than the one before." },
  },
  "system.token": {
    description: "An issued token, by its hash; the token itself is not stored. Source: issue 10.",
    states: {
      active: "Every process accepts it until it expires.",
      revoked: "No process accepts it.",
    },
  },
  "system.webhook": {
    description: "Sends published events to a subscriber's URL. Source: issue 10 §3.",
    states: {
      active: "It delivers events and retries failed deliveries.",
      paused: "Paused by its owner; on resume it continues where it stopped.",
      disabled: "The URL is gone or has accepted nothing for days; its owner may enable it.",
      deleted: "The webhook and its dead letters are deleted.",
    },
  },
}
