/**
 * Access control for workers' commands. They arrive on a subject to which only that worker can
 * publish, and are executed only if they concern its own registration, its own hold or the
 * resources of its job. All others are refused and logged.
 *
 * Source: DECISIONS, document 2, workers; decision 0063.
 */
import type { NatsConnection } from "@nats-io/transport-node"
import { Effect, Predicate } from "effect"
import { type Addressed, Unavailable } from "#actors/commands.ts"
import type { AnyDecider } from "#actors/decider.ts"
import { Backup } from "#actors/share-protection/backup.ts"
import { Job, jobAfter } from "#actors/share-protection/job.ts"
import { Lease, leaseAfter } from "#actors/share-protection/lease.ts"
import { Ledger } from "#actors/share-protection/ledger.ts"
import { Policy } from "#actors/share-protection/policy.ts"
import { Restore } from "#actors/share-protection/restore.ts"
import { Target } from "#actors/share-protection/target.ts"
import { Worker } from "#actors/share-protection/worker.ts"
import { remoteCommands, serveCommandsOn } from "#adapters/bus/commands.ts"
import { commandSubject, inboxOf } from "#adapters/share-protection/worker-users.ts"
import { Log, type Origin } from "#events/log.ts"
import { WorkerId } from "#schemas/share-protection/id.ts"
import { Forbidden } from "#schemas/share-protection/rejection.ts"

/** Maximum commands of a message: the largest step of a job has five. */
const commands_max = 16

/** The commands that workers send, by aggregate. */
const allowed_commands: ReadonlyArray<readonly [AnyDecider, ReadonlyArray<string>]> = [
  [Worker, ["RegisterWorker", "ReleaseWorkerJob"]],
  [Job, ["StartJob", "AdvanceJob", "CompleteJob", "FailJob"]],
  [Lease, ["ReleaseLease"]],
  [
    Backup,
    [
      "StartBackup",
      "CompleteBackup",
      "FailBackup",
      "FinishBackupRestore",
      "CompleteBackupUndelete",
      "FailBackupUndelete",
      "RecordRestoreTest",
      "FailRestoreTest",
    ],
  ],
  [Restore, ["StartRestore", "CompleteRestore", "FailRestore"]],
  [Policy, ["FinishShareBackup"]],
  [
    Target,
    [
      "CompleteEnrollment",
      "FailEnrollment",
      "CompleteFormatUpgrade",
      "FailFormatUpgrade",
      "RecordTargetUsage",
      "RecordTargetLocks",
      "DeregisterTargetBackups",
    ],
  ],
  [Ledger, ["Release"]],
]
const types = new Map(allowed_commands.map(([{ name }, types]) => [name, new Set(types)]))

/** Sends this worker's commands from its own process. */
export const workerCommands = (connection: NatsConnection, worker_id: WorkerId) =>
  remoteCommands(connection, { subject: commandSubject(worker_id) })

/** The worker of a command subject; the server prevents others from publishing there. */
const workerOf = (subject: string) => WorkerId.make(subject.split(".")[1] ?? "")

/** Executes the commands of all workers until the scope closes. */
export const serveWorkers = Effect.fnUntraced(function* (connection: NatsConnection) {
  const log = yield* Log
  const refuse = Effect.fnUntraced(function* (
    subject: string,
    origin: Origin,
    commands: ReadonlyArray<Addressed<unknown>>,
  ) {
    const worker_id = workerOf(subject)
    const why =
      refusalOf(worker_id, origin, commands) ?? (yield* foreignCommand(log, worker_id, commands))
    if (why === undefined) return undefined
    yield* Effect.logWarning(`A command of worker ${worker_id} was rejected: ${why}`)
    return new Forbidden({ detail: why })
  })
  const deciders = allowed_commands.map(([decider]) => decider)
  yield* serveCommandsOn(connection, {
    subject: "worker.*.command",
    queue: "share-protection",
    inbox: (subject) => inboxOf(workerOf(subject)),
    deciders,
    refuse,
  })
})

const fieldOf = (command: unknown, name: string) =>
  Predicate.hasProperty(command, name) ? command[name] : undefined

/** Why a worker may not send these commands; undefined if it may. */
export const refusalOf = (
  worker_id: WorkerId,
  { actor }: Origin,
  commands: ReadonlyArray<Addressed<unknown>>,
): string | undefined => {
  if (actor !== `worker:${worker_id}`) return "It has the actor of another principal."
  if (commands.length > commands_max) return `It sends more than ${commands_max} commands at once.`
  for (const { to, id, command } of commands) {
    const type = String(fieldOf(command, "type"))
    if (types.get(to.name)?.has(type) !== true) return `A worker must not send ${type}.`
    if (to.name === Worker.name && id !== worker_id) return `${type} is about worker ${id}.`
    const worker = fieldOf(command, "worker_id")
    if (worker !== undefined && worker !== worker_id) return `${type} names another worker.`
  }
  return undefined
}

/**
 * Why the commands do not concern what this worker holds; undefined if they do. Each batch that
 * changes a job's resources includes a command of the job, which requires the hold. Releasing a
 * lease and measuring a target require a hold of the repository.
 */
const foreignCommand = Effect.fnUntraced(
  function* (
    log: Log["Service"],
    worker_id: WorkerId,
    commands: ReadonlyArray<Addressed<unknown>>,
  ) {
    const job_id = commands.find(({ to }) => to.name === Job.name)?.id
    const recorded = job_id === undefined ? undefined : yield* log.load(`${Job.name}.${job_id}`)
    const job = recorded && (yield* jobAfter(log, recorded))
    const { resource_id, target_id, share_id, backup_id, project_id } = job ?? {}
    const subject_ids = [resource_id, target_id, share_id, backup_id, project_id]
    for (const { to, id, command } of commands) {
      const type = String(fieldOf(command, "type"))
      if (to.name === Worker.name) continue
      if (to.name === Lease.name || type === "RecordTargetUsage") {
        const released = fieldOf(command, "job_id")
        if (yield* isHeldByOthers(log, worker_id, id, released)) {
          return `${type} is about a repository that another worker holds.`
        }
      } else if (to.name === Job.name ? id !== job_id : !subject_ids.includes(id)) {
        return `${type} is not about the job.`
      }
    }
    return undefined
  },
  Effect.mapError(({ detail }) => new Unavailable({ detail })),
)

/** Whether that job's hold of the target, or every hold if no job is named, belongs to others. */
const isHeldByOthers = Effect.fnUntraced(function* (
  log: Log["Service"],
  worker_id: WorkerId,
  target_id: string,
  job_id: unknown,
) {
  const recorded = yield* log.load(`${Lease.name}.${target_id}`)
  if (recorded === undefined) return true
  const { holds } = yield* leaseAfter(log, recorded)
  // Releasing a hold that does not exist has no effect.
  if (job_id !== undefined) {
    return holds.some((hold) => hold.job_id === job_id && hold.worker_id !== worker_id)
  }
  return !holds.some((hold) => hold.worker_id === worker_id)
})
