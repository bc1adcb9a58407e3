/**
 * What is said of each chart and of each of its states, in reading order: by docs/lifecycles.md,
 * and by the console beside the chart that it draws.
 */
import type { Words } from "#actors/chart.ts"

/** By the chart's id. */
export const words: Readonly<Record<string, Words>> = {
  "blob-storage.cluster": {
    told: "A cluster of nodes, and the version of its ring. Source: document 1 §3.",
    states: {
      unformed: "No node has joined yet.",
      formed: "It has a ring, and nodes whose lives the next chart tells.",
    },
  },
  "blob-storage.node": {
    told: "One node in its cluster. Source: document 1 §3 States and transitions.",
    states: {
      joining: "It was admitted, and is not on the ring yet.",
      active: "It is on the ring and gets new blobs.",
      offline: "Nothing was heard of it for the deadline: it gets no new blobs.",
      leaving: "It gets no new blobs, and those it has move to other nodes.",
      left: "All its blobs are elsewhere. It may join again as a new member.",
      removed: "It is no member any more, and its blobs stayed with it. It may join again.",
    },
  },
  "blob-storage.volume": {
    told: "What one node holds, as far as its journal is in the log.",
    states: { open: "It follows the journal, fact by fact, for ever." },
  },
  "share-protection.target-template": {
    told: "Where a domain's buckets are (Shape B). Source: document 2 §2 Target template.",
    states: {
      present: "Targets can be registered against it, and policies name it.",
      deleted: "Its record is gone. Nothing referenced it any more.",
    },
  },
  "share-protection.target": {
    told: "A bucket with one repository in it. Source: document 2 §2 and §3 Target.",
    states: {
      present: "It has two sides, each with states of its own.",
      "present.enrollment.pending":
        "Its enrollment waits or runs; Shape B calls it enrolling. Its other jobs wait in queued.",
      "present.enrollment.available": "It has a repository: backups and restores begin.",
      "present.enrollment.error": "Its enrollment failed, and it tells why.",
      "present.format.unknown": "It has no repository yet.",
      "present.format.settled": "Its repository has a format, and can be used.",
      "present.format.upgrading": "Its format is upgraded: no backup and no restore begins on it.",
      deleted: "Its record is gone. What is in the bucket stays.",
    },
  },
  "share-protection.policy": {
    told: "A share's policy, and its backup under way. Source: document 2 §4 rule 3.",
    states: {
      "policy.none": "The share has no policy; backups on demand are possible.",
      "policy.defined": "The share has its one policy.",
      "backup.idle": "No backup of the share is under way.",
      "backup.in_flight": "One backup of the share is under way: a second is refused.",
    },
  },
  "share-protection.backup": {
    told: "One snapshot of a share. Source: document 2 §2 and §3 Backup.",
    states: {
      creating: "It was asked for, and its target is not enrolled yet.",
      queued: "It waits for a worker.",
      running: "A worker makes it.",
      available: "Its snapshot is in the repository: it can be restored.",
      error: "It was not made, or its snapshot was lost. A retry of its job makes it again.",
      expired: "The retention let it go: a tombstone that cannot be restored.",
      undeleting: "Its tenant wants it back: a job looks whether its snapshot can be had again.",
      deleted: "Its record is gone.",
    },
  },
  "share-protection.restore": {
    told: "A backup's files on their way back. Source: document 2 §2 Restore.",
    states: {
      pending: "It was asked for, and was not admitted yet.",
      queued: "It waits for a worker.",
      running: "A worker writes the files.",
      available: "The files are there. It ends here.",
      error: "It failed. A retry of its job tries again.",
    },
  },
  "share-protection.job": {
    told: "One asynchronous operation on its way through a worker. Source: document 2 §3 Job.",
    states: {
      queued:
        "It waits for its target, a free slot and the repository; then for the worker to take it.",
      provisioning_network: "The worker took it, and sees how to reach the share.",
      provisioning_source:
        "It makes ready what is read or written: a snapshot where the share can.",
      connecting_repository: "It fetches the secrets, and opens the repository.",
      transferring: "The engine runs, and the progress rises.",
      finalizing: "What was done is looked at: locks and sizes.",
      releasing: "What was made ready for it is taken away.",
      available: "It succeeded. It ends here.",
      error: "It failed or was cancelled. Only a retry leads out of here.",
    },
  },
  "share-protection.lease": {
    told: "Who reads a repository, who writes it. Source: document 2 §7 svc.repository_locked.",
    states: {
      open: "Jobs hold it: many that read and one that writes beside them, or one job alone.",
      closed: "Its target is gone: nothing holds it again.",
    },
  },
  "share-protection.worker": {
    told: "A machine whose agent runs jobs. Source: document 2 §3 Worker.",
    states: {
      booting: "Its machine was asked for, and its agent has yet to register.",
      ready: "It takes jobs while it has a free slot.",
      draining: "It takes no new job; those that it runs finish.",
      retiring: "It is marked for deletion, and goes when its last job has ended.",
      retired: "Its machine is gone.",
      dead: "It did not come up, or nothing was heard of it. What it held is taken from it.",
    },
  },
  "share-protection.fleet": {
    told: "When a worker may boot, which rollout runs. Source: document 2 §8 worker_boot_*.",
    states: { open: "It counts boots and their failures, for ever." },
  },
  "share-protection.rollout": {
    told: "Workers of an old image are replaced, one by one. Source: document 2 §6 and §9.",
    states: {
      running: "Domain by domain, canary first.",
      "running.between": "No worker is being replaced at this moment.",
      "running.replacing": "An old worker is drained, and a new one boots.",
      succeeded: "All domains are through.",
      halted: "A new worker did not come up; the old one takes jobs again.",
    },
  },
  "share-protection.domain": {
    told: "A domain's own settings. Source: document 2 §4, PATCH /v1/admin/domains/{domain_id}.",
    states: {
      applied: "What was configured holds.",
      pending: "A change waits for the next reconciliation tick.",
    },
  },
  "share-protection.scheduler": {
    told: "Whether policies' schedules are followed. Source: document 2 §3 Scheduler.",
    states: {
      running: "Ticks are taken.",
      paused: "Ticks pass without a backup, and are not made up for.",
    },
  },
  "share-protection.reconciliation": {
    told: "What is recorded is compared with what is there. Source: document 2 §2 and §4.",
    states: {
      idle: "It waits for the next tick.",
      asked: "An operator did not want to wait: it begins as soon as it can.",
      running: "Its loops go through, one after the other.",
    },
  },
  "share-protection.ledger": {
    told: "How much of its quotas a project uses. Source: document 2 §7 svc.quota_exceeded.",
    states: { open: "It counts targets, policies and backups, for ever." },
  },
  "capital-pressure.observation": {
    told: "What a publisher tells of a metric in one year. Source: document 3 §2 A HistoryOut.",
    states: {
      real: "A publisher told it. What was revised is kept as it was, too.",
      demo: "It was generated, and no real value ever joins it.",
    },
  },
  "capital-pressure.price": {
    told: "A ticker's closes in one year. Source: document 3 §2 A WatchlistOut.",
    states: {
      real: "A publisher told them.",
      demo: "They were generated, and no real one ever joins them.",
    },
  },
  "capital-pressure.composite": {
    told: "The composite of each business day of a year. Source: document 3 §1 A.",
    states: { computed: "Each day is as it was computed last." },
  },
  "capital-pressure.feed": {
    told: "How the ingest of a metric goes, of prices, of the watchlist. Source: document 3 §2 A.",
    states: {
      never: "It was not asked yet.",
      ingested: "It was asked last and answered.",
      failing: "It was asked last and failed; what it told before is still there.",
    },
  },
  "capital-pressure.schedule": {
    told: "A job of the scheduler, one run at a time. Source: document 3 §2 A SchedulerOut.",
    states: {
      idle: "It waits for its next tick.",
      running: "A run was started, and nothing was heard yet of how it ended.",
    },
  },
  "capital-pressure.watchlist": {
    told: "The operator's targets, all at once. Source: document 3 §2 A WatchlistOut.",
    states: {
      real: "The operator's file told them.",
      demo: "They were generated, and no real one ever joins them.",
    },
  },
  "carrier-search.search": {
    told: "What one node was asked to search, as far as its spool is in the log.",
    states: { open: "It follows the spool, fact by fact, for ever." },
  },
  "plant-disease.prediction": {
    told: "What one node predicted, as far as its spool is in the log.",
    states: { open: "It follows the spool, fact by fact, for ever." },
  },
  "system.checkpoint": {
    told: "The sealed stretches of the log, which tie the chains of all aggregates together.",
    states: { open: "Each stretch follows the one before." },
  },
  "system.election": {
    told: "Who leads where only one may. The position of the event is the fence.",
    states: { open: "One leader follows another." },
  },
  "system.generation": {
    told: "The streams of the log, each of which begins with the last state of everything.",
    states: { open: "Each generation follows the one before." },
  },
  "system.probe": {
    told: "Commits that prove that the log takes commits, while nothing else writes to it.",
    states: { open: "One probe follows another." },
  },
  "system.publication": {
    told: "Anchors of the numbering of published events. Source: decision 0172.",
    states: { open: "Each anchor is at a later position than the one before, or has other types." },
  },
  "system.quarantine": {
    told: "Up to which position an operator knows of the commits that cannot be read.",
    states: { open: "Each acknowledgement reaches further than the one before." },
  },
  "system.restoration": {
    told: "Restores of the log from a backup. Source: issue 10, deploy.",
    states: { open: "Each restore has more of the log than the one before." },
  },
  "system.token": {
    told: "A token that was issued, by its hash: the token itself is nowhere. Source: issue 10.",
    states: {
      active: "Every process takes it, until it expires.",
      revoked: "No process takes it any more.",
    },
  },
  "system.webhook": {
    told: "Published events sent to an address of a subscriber's own. Source: issue 10 §3.",
    states: {
      active: "It delivers, and tries again what was not taken.",
      paused: "Its owner wants it to wait: it goes on from where it stopped.",
      disabled: "Its address is gone, or took nothing for days; its owner may enable it.",
      deleted: "It is gone, and its dead letters with it.",
    },
  },
}
