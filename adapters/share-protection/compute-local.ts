/**
 * Local machines: each is an agent as a child process, in a process group with the engines that it
 * runs. None outlives this process, however it ends: an agent stops at the end of its standard
 * input.
 *
 * Source: DECISIONS, document 2, workers; address (10 s in all to stop).
 */
import { type ChildProcess, spawn } from "node:child_process"
import { Deferred, Effect, type Redacted, type Scope } from "effect"
import { type Boot, Compute } from "#actors/share-protection/ports/compute.ts"
import { findImage } from "#adapters/share-protection/compute-images.ts"
import { newWorkerKeys, workerUser } from "#adapters/share-protection/worker-users.ts"
import type { BusUsers } from "#bus"
import { StopDeadline, work_ms } from "#processes"
import type { WorkerId } from "#schemas/share-protection/id.ts"
import { WorkerUnavailable } from "#schemas/share-protection/rejection.ts"

/** Milliseconds that an agent has to stop its jobs and report them; then its group is killed. */
const stop_ms_max = work_ms

/** How to start an agent. */
export interface AgentCommand {
  readonly program: string
  readonly args: ReadonlyArray<string>
  readonly environment: NodeJS.ProcessEnv
  /** Its credentials, one line on standard input; `seed` belongs to its bus user. */
  readonly credentials: (boot: Boot, seed: Redacted.Redacted<string> | null) => string
}

export interface LocalComputeOptions {
  readonly images_dir: string
  readonly max_machines: number
  readonly agent: AgentCommand
  /** Undefined if the settings configure the agents' users. */
  readonly users: BusUsers | undefined
  readonly stop_ms?: number
}

interface Machine {
  child: ChildProcess | undefined
  is_stopped: boolean
  /** Done once the process and all its children have ended. */
  readonly ended: Deferred.Deferred<void>
}

/** The machines, and their shutdown. */
export interface LocalCompute {
  readonly compute: Compute["Service"]
  /** Starts no more machines and signals all to stop; completes before they have stopped. */
  readonly shutdown: Effect.Effect<void>
}

/** The state of all machines of this process. */
interface MachinePool {
  readonly options: LocalComputeOptions
  readonly scope: Scope.Scope
  readonly machines: Map<WorkerId, Machine>
  is_closing: boolean
}

/** Machines that are stopped when the scope closes. */
export const computeLocal = Effect.fnUntraced(function* (options: LocalComputeOptions) {
  const scope = yield* Effect.scope
  const pool: MachinePool = { options, scope, machines: new Map(), is_closing: false }
  const { machines } = pool
  yield* Effect.addFinalizer(() => stopAll(pool))
  const compute = Compute.of({
    image: (name) => findImage(options.images_dir, name),
    boot: (request) => boot(pool, request),
    destroy: (worker_id) =>
      Effect.suspend(() => {
        const machine = machines.get(worker_id)
        return machine === undefined ? Effect.void : stop(pool, machine)
      }),
    find: (worker_id) =>
      Effect.sync(() => {
        const machine = machines.get(worker_id)
        if (machine === undefined) return "gone"
        return machine.child === undefined ? "booting" : "active"
      }),
  })
  const local: LocalCompute = { compute, shutdown: stopMachines(pool) }
  return local
})

const boot = Effect.fnUntraced(function* (pool: MachinePool, request: Boot) {
  const { options, machines } = pool
  const { worker_id, image } = request
  const found_image = yield* findImage(options.images_dir, image)
  if (machines.has(worker_id)) return
  if (found_image === undefined) return yield* unavailable(`The image ${image} does not exist.`)
  if (pool.is_closing) return yield* unavailable("The server is stopping.")
  if (machines.size >= options.max_machines) {
    return yield* unavailable(`The maximum of ${options.max_machines} workers is running.`)
  }
  const ended = yield* Deferred.make<void>()
  const machine: Machine = { child: undefined, is_stopped: false, ended }
  machines.set(worker_id, machine)
  const run = Effect.runForkWith(yield* Effect.context())
  yield* startAgent(options, request, machine, (reason) => {
    const warning = Effect.logWarning(`Worker ${worker_id} exited: ${reason}`)
    run(
      Effect.andThen(machine.is_stopped ? Effect.void : warning, cleanUp(pool, worker_id, machine)),
    )
  }).pipe(Effect.onError(() => cleanUp(pool, worker_id, machine)))
})

/** Cleans up after a machine: kills leftover processes and removes its bus user. */
const cleanUp = Effect.fnUntraced(function* (
  pool: MachinePool,
  worker_id: WorkerId,
  machine: Machine,
) {
  killGroup(machine)
  pool.machines.delete(worker_id)
  yield* pool.options.users?.dismiss(worker_id) ?? Effect.void
  yield* Deferred.succeed(machine.ended, undefined)
})

/** Signals the machine to stop and kills it after the timeout; completes immediately. */
const stop = Effect.fnUntraced(function* ({ options, scope }: MachinePool, machine: Machine) {
  if (machine.is_stopped) return
  machine.is_stopped = true
  machine.child?.kill("SIGTERM")
  const stopped = Effect.timeoutOption(
    Deferred.await(machine.ended),
    options.stop_ms ?? stop_ms_max,
  )
  const killOverdue = Effect.map(stopped, (ended) => {
    if (ended._tag === "None") killGroup(machine)
  })
  yield* Effect.forkIn(killOverdue, scope)
})

const stopMachines = (pool: MachinePool) =>
  Effect.suspend(() => {
    pool.is_closing = true
    return Effect.forEach([...pool.machines.values()], (machine) => stop(pool, machine), {
      discard: true,
    })
  })

const stopAll = Effect.fnUntraced(function* (pool: MachinePool) {
  yield* stopMachines(pool)
  const all = [...pool.machines.values()]
  const ended = Effect.forEach(all, (machine) => Deferred.await(machine.ended), {
    concurrency: "unbounded",
    discard: true,
  })
  const wait_ms = yield* (yield* StopDeadline).work(pool.options.stop_ms ?? stop_ms_max)
  yield* Effect.timeoutOption(ended, wait_ms)
  for (const machine of all) killGroup(machine)
  yield* ended
})

const unavailable = (detail: string) => Effect.fail(new WorkerUnavailable({ detail }))

/** Kills what is left of the group, for example engines whose agent was killed. */
const killGroup = ({ child }: Machine) => {
  if (child?.pid === undefined) return
  try {
    process.kill(-child.pid, "SIGKILL")
  } catch {
    // The group has already ended.
  }
}

/** Creates the worker's bus user and starts its agent; `onEnd` is called once, however it ends. */
const startAgent = Effect.fnUntraced(function* (
  { agent, users }: LocalComputeOptions,
  request: Boot,
  machine: Machine,
  onEnd: (why: string) => void,
) {
  const keys = yield* newWorkerKeys
  const { public_key } = keys
  yield* (
    users?.admit(workerUser({ worker_id: request.worker_id, public_key })) ?? Effect.void
  ).pipe(Effect.mapError(({ message }) => new WorkerUnavailable({ detail: message })))
  const credentials = agent.credentials(request, users === undefined ? null : keys.seed)
  yield* Effect.callback<void, WorkerUnavailable>((resume) => {
    const child = spawn(agent.program, agent.args, {
      env: agent.environment,
      detached: true,
      stdio: ["pipe", "ignore", "inherit"],
    })
    child.once("error", ({ message }) => {
      if (machine.child === undefined) {
        resume(unavailable(`An agent cannot be started: ${message}`))
      }
    })
    child.once("spawn", () => {
      machine.child = child
      child.once("exit", (code, signal) => onEnd(signal ? `signal ${signal}` : `code ${code}`))
      // An agent that has already ended does not read its input; `exit` reports that.
      child.stdin?.on("error", () => undefined)
      child.stdin?.write(`${credentials}\n`)
      if (machine.is_stopped) child.kill("SIGTERM")
      resume(Effect.void)
    })
  })
}, Effect.uninterruptible)
