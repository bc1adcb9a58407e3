/**
 * One-line summary of each command, for its own help and that of `almanac`. Kept here because
 * loading every command would take most of the time of `almanac --help`.
 */
export const summaries = {
  targets: "Buckets that backups go into",
  templates: "Target templates of a domain (Shape B)",
  policies: "When shares are backed up, and what is kept",
  backups: "Backups of shares",
  restores: "Restores of backups",
  jobs: "Jobs: all that takes its time",
  usage: "What the project protects and stores",
  service: "The running server",
  blobs: "Blobs: bytes under their hash",
  cluster:
    "Run a cluster of blob nodes on this machine until Ctrl-C, or ask a node about its cluster",
  readings: "The capital pressure dashboard",
  ingest:
    "Fetch the dashboard's metrics and prices: exit code 0, 2 when some feeds failed, 1 " +
    "when all did or the command line is wrong, 130 when it was stopped",
  "backfill-composite": "Compute the composite of each business day, and store what changed",
  carriers: "Carriers by MC number, and the mirror of their registry",
  predict: "What the leaves on these images have; without one, about the model",
  plant: "Models that know leaves: look at one, convert one, train one, draw a leaf",
  workers: "Machines that run jobs",
  rollouts: "New images for workers, domain by domain",
  domains: "Settings of one domain",
  coverage: "Which shares are protected",
  scheduling: "Whether policies' schedules run",
  reconciliation: "What is recorded, compared with what is there",
  "read-models": "Tables that are made from the log",
  events: "Published events",
  webhooks: "Published events, sent to an address of yours",
  audit: "Who did what when, what it looked like then, and whether it is whole",
  log: "The log itself: its size, its generations, and what it has lost",
  rebuild: "Build read models from the log again, from nothing",
  migrate: "Make streams and tables, or bring them up to date; safe to repeat",
  serve: "Serve every enabled service until the process is stopped",
  agent: "Run jobs as a worker until the process is stopped",
  token: "Tokens for tenants, operators and programs",
  trust: "Trusts of the embedded identity",
  secret: "Secrets of the embedded secrets manager",
  catalog: "The service catalogue of Keystone",
  doctor:
    "Look at this machine, its server and bus: a line each, and what to do. Exit code 1 on fail",
  "backup-state":
    "Back up the log, keys, secrets and tokens, while the server runs or stands still",
  "restore-state": "Restore a backup of state into an empty data folder. Safe to stop and repeat",
  demo: "Servers for trying Almanac out",
  completion: "Print the completion script of a shell",
} as const

/** The name of a command. */
export type CommandName = keyof typeof summaries
