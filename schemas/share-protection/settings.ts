/** Settings of share protection. Source: document 2 §8 with its decisions. */
import { choice, flag, integer, list, network, secret, setting, text } from "#schemas/setting.ts"
import { capacity_slots_max } from "#schemas/share-protection/worker.ts"

const hour_s = 3600
const day_s = 86_400
/** A minute: the time limit of a whole statement. */
const lock_s_max = 60
/** A year: nobody waits longer. */
const year_s = 31_536_000
const quota_max = 1_000_000
const workers_max = 10_000
const failures_max = 100
/** 100 Gbit/s: faster than any network interface of a worker. */
const kib_per_second_max = 12_500_000

const from_options = "document 2 §8"

/** Section `[DEFAULT]`: OpenStack's name for settings without a section. */
export const catalog = {
  catalog_type: setting(text(/^[\w-]{1,255}$/, "letters, digits, _ and -"), "share-protection", {
    meaning: "Type under which the endpoint is in the service catalogue.",
    source: "document 2 §5",
  }),
  endpoint_type: setting(choice("publicURL", "internalURL", "adminURL"), "publicURL", {
    meaning: "Which of a service's endpoints are used.",
    source: "document 2 §5",
  }),
}

/** Section `[conductor]`. */
export const conductor = {
  scheduler_interval: setting(integer(1, day_s, "seconds"), 60, {
    meaning: "Seconds from one evaluation of the policies' schedules to the next.",
    source: from_options,
  }),
  schedule_jitter_seconds: setting(integer(0, hour_s, "seconds"), 0, {
    meaning: "Seconds by which backups of one tick are spread, by policy; 0: none.",
    source: "beyond the document",
  }),
  reconciliation_interval: setting(integer(1, day_s, "seconds"), 300, {
    meaning: "Seconds from one sweep of jobs, shares and repositories to the next.",
    source: from_options,
    reloadable: true,
  }),
  worker_heartbeat_deadline_seconds: setting(integer(1, day_s, "seconds"), 60, {
    meaning: "Seconds without a heartbeat after which a worker is dead.",
    source: from_options,
  }),
  queued_job_deadline_seconds: setting(integer(1, day_s, "seconds"), 300, {
    meaning: "Seconds in the queue after which a job is put before the conductor again.",
    source: from_options,
  }),
  worker_boot_cooldown_seconds: setting(integer(0, day_s, "seconds"), 180, {
    meaning: "Least seconds from one boot of a worker to the next, in a project.",
    source: from_options,
  }),
  worker_boot_grace_seconds: setting(integer(1, day_s, "seconds"), 1200, {
    meaning: "Seconds that a new worker has to become active.",
    source: from_options,
  }),
  worker_boot_max_failures: setting(integer(0, failures_max, "failures"), 3, {
    meaning: "Failed boots within the window after which no more workers are booted; 0: no limit.",
    source: from_options,
  }),
  worker_boot_failure_window_seconds: setting(integer(1, year_s, "seconds"), 7200, {
    meaning: "Seconds for which a failed boot counts.",
    source: from_options,
  }),
  min_workers: setting(integer(0, workers_max, "workers"), 1, {
    meaning: "Least active workers of a project.",
    source: from_options,
  }),
  max_workers: setting(integer(1, workers_max, "workers"), 10, {
    meaning: "Most workers of a project.",
    source: "decisions of document 2, domains",
  }),
  maintenance_interval_seconds: setting(integer(hour_s, year_s, "seconds"), 604_800, {
    meaning: "Seconds from one maintenance of a repository to the next.",
    source: from_options,
  }),
  restore_test_interval_seconds: setting(integer(0, year_s, "seconds"), 604_800, {
    meaning: "Seconds from one restore test of a protected share to the next; 0: none.",
    source: "beyond the document",
  }),
  worker_boot_image: setting(text(/^\P{Cc}{0,255}$/u, "at most 255 characters"), "", {
    meaning:
      "Image of new workers; it must carry svc_worker_image=1. Empty: none are booted. Not " +
      "given, and with local machines, it is `almanac-agent`.",
    source: from_options,
  }),
}

/** Section `[enrollment]`. */
export const enrollment = {
  dispatch: setting(choice("rpc", "inline"), "rpc", {
    meaning:
      "Whether a worker enrolls a target, or the request itself checks it: development only.",
    source: from_options,
  }),
}

/** Section `[targets]`. */
export const targets = {
  allowed_networks: setting(list(network), [], {
    meaning:
      "Networks in which tenants' buckets may be though they are loopback, link-local or " +
      "private. With the embedded identity the loopback and private ones unless it is given.",
    source: "decision 0146",
  }),
}

/** Section `[engine]`. */
export const engine = {
  subprocess_timeout: setting(integer(1, day_s, "seconds"), 3600, {
    meaning: "Seconds after which a process of the engine is killed.",
    source: from_options,
  }),
  require_fips_profile: setting(flag, true, {
    meaning:
      "Refuse repositories without a FIPS profile. With the embedded identity it is false " +
      "unless it is given.",
    source: "document 2 §8; decisions of document 2, FIPS profile",
  }),
  binary: setting(text(), "", {
    meaning: "Path of `restic`; empty: PATH, then the cache.",
    source: "decisions, binaries",
  }),
  upload_kib_per_second: setting(integer(0, kib_per_second_max, "KiB"), 0, {
    meaning: "Most that one process of the engine sends in a second; 0: no limit.",
    source: "beyond the document",
  }),
  download_kib_per_second: setting(integer(0, kib_per_second_max, "KiB"), 0, {
    meaning: "Most that one process of the engine receives in a second; 0: no limit.",
    source: "beyond the document",
  }),
}

/** Section `[worker]`. */
export const worker = {
  capacity_slots: setting(integer(1, capacity_slots_max, "jobs"), 2, {
    meaning: "Jobs of one worker at a time. Required where the identity is not the embedded one.",
    source: "document 2 §8; decisions, configuration",
  }),
  command_timeout_seconds: setting(integer(1, hour_s, "seconds"), 300, {
    meaning: "Seconds in which a worker acknowledges a job.",
    source: from_options,
  }),
  max_command_duration_seconds: setting(integer(1, year_s, "seconds"), 21_600, {
    meaning: "Seconds after which a job of a worker is ended.",
    source: from_options,
  }),
}

/** Locations of read models; a PostgreSQL URL may have a user, but no password. */
const connections = new RegExp(
  [
    "^$",
    String.raw`^sqlite:\/\/\/[^\r\n\0]+$`,
    [
      String.raw`^postgres(ql)?:\/\/([^\s:@/?#]+@)?[^\s:@/?#]*(:\d+)?`,
      String.raw`\/[^\s?#]+(\?(?!\S*password)\S*)?$`,
    ].join(""),
  ].join("|"),
)

/** Section `[database]`. */
export const database = {
  connection: setting(text(connections, "sqlite:///FOLDER or postgresql://USER@HOST/NAME"), "", {
    meaning:
      "Where read models are kept; empty: `read-models` in the data folder. PostgreSQL holds " +
      "those of all processes of a deployment, in a database of its own; its password is " +
      "`password`. Required where the identity is not the embedded one.",
    source: "document 2 §8; decisions, configuration; 0142",
  }),
  password: setting(secret, "", {
    meaning: "Password of the user of PostgreSQL; empty: what `PGPASSWORD` or the server knows.",
    source: "decision 0142",
  }),
  password_file: setting(text(), "", {
    meaning: "File that holds `password`.",
    source: "decision 0142",
  }),
  statement_timeout_seconds: setting(integer(1, hour_s, "seconds"), 30, {
    meaning: "Seconds that PostgreSQL may take for one read; above them it is ended: 503.",
    source: "decision 0154",
  }),
  lock_timeout_seconds: setting(integer(1, lock_s_max, "seconds"), 20, {
    meaning:
      "Seconds that PostgreSQL waits for what another session has locked, where tables are made " +
      "or exchanged at a start or a rebuild.",
    source: "decision 0154",
  }),
}

/** Section `[quota]`: the quotas of each project. */
export const quota = {
  targets: setting(integer(0, quota_max, "targets"), 10, {
    meaning: "Targets of a project.",
    source: "decisions of document 2, quotas",
  }),
  policies: setting(integer(0, quota_max, "policies"), 100, {
    meaning: "Policies of a project.",
    source: "decisions of document 2, quotas",
  }),
  backups: setting(integer(0, quota_max, "backups"), 10_000, {
    meaning: "Backups of a project; expired ones do not count.",
    source: "decisions of document 2, quotas",
  }),
}

/** Section `[shares]`: the embedded shares. */
export const shares = {
  root: setting(text(), "", {
    meaning: "Folder of the shares, `<project>/<share>`; empty: `shares` in the data folder.",
    source: "decisions, shares",
  }),
  snapshots: setting(flag, true, {
    meaning: "Whether a share is copied before it is backed up; false: the live folder is read.",
    source: "decisions of document 2, backup create",
  }),
}

/** Section `[policy]`. */
export const policy = {
  file: setting(text(), "", {
    meaning: "File of oslo.policy rules that override the defaults; read again when it changes.",
    source: "document 2 §5; decisions of document 2, default policy rules",
  }),
}
