/** Settings of share protection. Source: document 2 §8 with its decisions. */
import { choice, flag, integer, list, network, secret, setting, text } from "#schemas/setting.ts"
import { capacity_slots_max } from "#schemas/share-protection/worker.ts"

const hour_s = 3600
const day_s = 86_400
/** A minute: the time limit of a whole statement. */
const lock_s_max = 60
/** A year: longer intervals make no sense. */
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
    meaning: "Type of the endpoint in the service catalogue.",
    source: "document 2 §5",
  }),
  endpoint_type: setting(choice("publicURL", "internalURL", "adminURL"), "publicURL", {
    meaning: "Interface of the endpoints to use.",
    source: "document 2 §5",
  }),
}

/** Section `[conductor]`. */
export const conductor = {
  scheduler_interval: setting(integer(1, day_s, "seconds"), 60, {
    meaning: "Interval between evaluations of the policies' schedules, in seconds.",
    source: from_options,
  }),
  schedule_jitter_seconds: setting(integer(0, hour_s, "seconds"), 0, {
    meaning: "Seconds over which the backups of one tick are spread, by policy; 0: no spread.",
    source: "beyond the document",
  }),
  reconciliation_interval: setting(integer(1, day_s, "seconds"), 300, {
    meaning: "Interval between sweeps of jobs, shares and repositories, in seconds.",
    source: from_options,
    reloadable: true,
  }),
  worker_heartbeat_deadline_seconds: setting(integer(1, day_s, "seconds"), 60, {
    meaning: "Seconds without a heartbeat after which a worker is dead.",
    source: from_options,
  }),
  queued_job_deadline_seconds: setting(integer(1, day_s, "seconds"), 300, {
    meaning: "Seconds in the queue after which a job is dispatched again.",
    source: from_options,
  }),
  worker_boot_cooldown_seconds: setting(integer(0, day_s, "seconds"), 180, {
    meaning: "Minimum interval between boots of workers in a project, in seconds.",
    source: from_options,
  }),
  worker_boot_grace_seconds: setting(integer(1, day_s, "seconds"), 1200, {
    meaning: "Seconds within which a new worker must become active.",
    source: from_options,
  }),
  worker_boot_max_failures: setting(integer(0, failures_max, "failures"), 3, {
    meaning: "Number of failed boots within the window that stops further boots; 0: no limit.",
    source: from_options,
  }),
  worker_boot_failure_window_seconds: setting(integer(1, year_s, "seconds"), 7200, {
    meaning: "Window in seconds in which failed boots are counted.",
    source: from_options,
  }),
  min_workers: setting(integer(0, workers_max, "workers"), 1, {
    meaning: "Minimum number of active workers of a project.",
    source: from_options,
  }),
  max_workers: setting(integer(1, workers_max, "workers"), 10, {
    meaning: "Maximum number of workers of a project.",
    source: "decisions of document 2, domains",
  }),
  maintenance_interval_seconds: setting(integer(hour_s, year_s, "seconds"), 604_800, {
    meaning: "Interval between maintenance runs of a repository, in seconds.",
    source: from_options,
  }),
  restore_test_interval_seconds: setting(integer(0, year_s, "seconds"), 604_800, {
    meaning: "Interval between restore tests of a protected share, in seconds; 0: no tests.",
    source: "beyond the document",
  }),
  worker_boot_image: setting(text(/^\P{Cc}{0,255}$/u, "at most 255 characters"), "", {
    meaning:
      "Image of new workers, with the property svc_worker_image=1. Empty: no workers are booted. " +
      "Not set, with local workers: `almanac-agent`.",
    source: from_options,
  }),
}

/** Section `[enrollment]`. */
export const enrollment = {
  dispatch: setting(choice("rpc", "inline"), "rpc", {
    meaning:
      "Where enrollment checks run. rpc: on a worker; inline: in the request, for development " +
      "only.",
    source: from_options,
  }),
}

/** Section `[targets]`. */
export const targets = {
  allowed_networks: setting(list(network), [], {
    meaning:
      "Loopback, link-local or private networks in which tenants' buckets are allowed. Not set, " +
      "with the embedded identity: the loopback and private networks.",
    source: "decision 0146",
  }),
}

/** Section `[engine]`. */
export const engine = {
  subprocess_timeout: setting(integer(1, day_s, "seconds"), 3600, {
    meaning: "Timeout in seconds after which an engine process is killed.",
    source: from_options,
  }),
  require_fips_profile: setting(flag, true, {
    meaning:
      "Whether repositories without a FIPS profile are rejected. Not set, with the embedded " +
      "identity: false.",
    source: "document 2 §8; decisions of document 2, FIPS profile",
  }),
  binary: setting(text(), "", {
    meaning: "Path of `restic`; empty: looked up in PATH, then in the cache.",
    source: "decisions, binaries",
  }),
  upload_kib_per_second: setting(integer(0, kib_per_second_max, "KiB"), 0, {
    meaning: "Maximum upload rate of one engine process; 0: no limit.",
    source: "beyond the document",
  }),
  download_kib_per_second: setting(integer(0, kib_per_second_max, "KiB"), 0, {
    meaning: "Maximum download rate of one engine process; 0: no limit.",
    source: "beyond the document",
  }),
}

/** Section `[worker]`. */
export const worker = {
  capacity_slots: setting(integer(1, capacity_slots_max, "jobs"), 2, {
    meaning:
      "Maximum number of concurrent jobs of a worker. Required unless the identity is embedded.",
    source: "document 2 §8; decisions, configuration",
  }),
  command_timeout_seconds: setting(integer(1, hour_s, "seconds"), 300, {
    meaning: "Seconds within which a worker must acknowledge a job.",
    source: from_options,
  }),
  max_command_duration_seconds: setting(integer(1, year_s, "seconds"), 21_600, {
    meaning: "Timeout of a job in seconds.",
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
      "Database of the read models; empty: `read-models` in the data folder. PostgreSQL stores " +
      "those of all processes of a deployment in a dedicated database; the password is " +
      "`password`. Required unless the identity is embedded.",
    source: "document 2 §8; decisions, configuration; 0142",
  }),
  password: setting(secret, "", {
    meaning:
      "Password of the PostgreSQL user; empty: `PGPASSWORD`, or authentication without a password.",
    source: "decision 0142",
  }),
  password_file: setting(text(), "", {
    meaning: "File that contains `password`.",
    source: "decision 0142",
  }),
  statement_timeout_seconds: setting(integer(1, hour_s, "seconds"), 30, {
    meaning:
      "Timeout of one PostgreSQL query in seconds; a request that exceeds it gets status 503.",
    source: "decision 0154",
  }),
  lock_timeout_seconds: setting(integer(1, lock_s_max, "seconds"), 20, {
    meaning:
      "Timeout in seconds for locks of other PostgreSQL sessions, when tables are created " +
      "or replaced at startup or by a rebuild.",
    source: "decision 0154",
  }),
}

/** Section `[quota]`: the quotas of each project. */
export const quota = {
  targets: setting(integer(0, quota_max, "targets"), 10, {
    meaning: "Maximum number of targets of a project.",
    source: "decisions of document 2, quotas",
  }),
  policies: setting(integer(0, quota_max, "policies"), 100, {
    meaning: "Maximum number of policies of a project.",
    source: "decisions of document 2, quotas",
  }),
  backups: setting(integer(0, quota_max, "backups"), 10_000, {
    meaning: "Maximum number of backups of a project; expired backups do not count.",
    source: "decisions of document 2, quotas",
  }),
}

/** Section `[shares]`: the embedded shares. */
export const shares = {
  root: setting(text(), "", {
    meaning:
      "Folder of the embedded shares, `<project>/<share>`; empty: `shares` in the data folder.",
    source: "decisions, shares",
  }),
  snapshots: setting(flag, true, {
    meaning: "Whether a share is copied before a backup; false: the backup reads the live folder.",
    source: "decisions of document 2, backup create",
  }),
}

/** Section `[policy]`. */
export const policy = {
  file: setting(text(), "", {
    meaning: "File with oslo.policy rules that override the defaults; reloaded when it changes.",
    source: "document 2 §5; decisions of document 2, default policy rules",
  }),
}
