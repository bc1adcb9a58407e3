/**
 * Machines that are processes of this one: each an agent, in a group of its own with the engines
 * that it runs. None outlives this process, however that ends: an agent ends when its standard
 * input does.
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

/** Milliseconds that an agent gets to stop what it runs and to tell; then its group is killed. */
const stop_ms_max = work_ms

/** How an agent is started. */
export interface AgentCommand {
  readonly program: string
  readonly args: ReadonlyArray<string>
  readonly environment: NodeJS.ProcessEnv
  /** The line that it reads from its standard input; `seed` is its user's on the bus. */
  readonly credentials: (boot: Boot, seed: Redacted.Redacted<string> | null) => string
}

export interface LocalComputeOptions {
  readonly images_dir: string
  readonly max_machines: number
  readonly agent: AgentCommand
  /** Undefined where agents are who the settings say. */
  readonly users: BusUsers | undefined
  readonly stop_ms?: number
}

interface Machine {
  child: ChildProcess | undefined
  is_stopped: boolean
  /** How it ended, once nothing of it runs any more. */
  readonly ended: Deferred.Deferred<void>
}

/** Where machines are, and a word to all of them that it is time to go. */
export interface LocalCompute {
  readonly compute: Compute["Service"]
  /** From here none is booted, and all stop: it answers before they have. */
  readonly shutdown: Effect.Effect<void>
}

/** All machines of this process. */
interface Room {
  readonly options: LocalComputeOptions
  readonly scope: Scope.Scope
  readonly machines: Map<WorkerId, Machine>
  is_closing: boolean
}

/** Machines until the scope closes, which ends them. */
export const computeLocal = Effect.fnUntraced(function* (options: LocalComputeOptions) {
  const scope = yield* Effect.scope
  const room: Room = { options, scope, machines: new Map(), is_closing: false }
  const { machines } = room
  yield* Effect.addFinalizer(() => closed(room))
  const compute = Compute.of({
    image: (name) => findImage(options.images_dir, name),
    boot: (request) => boot(room, request),
    destroy: (worker_id) =>
      Effect.suspend(() => {
        const machine = machines.get(worker_id)
        return machine === undefined ? Effect.void : stop(room, machine)
      }),
    find: (worker_id) =>
      Effect.sync(() => {
        const machine = machines.get(worker_id)
        if (machine === undefined) return "gone"
        return machine.child === undefined ? "booting" : "active"
      }),
  })
  const local: LocalCompute = { compute, shutdown: endMachines(room) }
  return local
})

const boot = Effect.fnUntraced(function* (room: Room, request: Boot) {
  const { options, machines } = room
  const { worker_id, image } = request
  const found = yield* findImage(options.images_dir, image)
  if (machines.has(worker_id)) return
  if (found === undefined) return yield* unavailable(`There is no image ${image}.`)
  if (room.is_closing) return yield* unavailable("The server stops.")
  if (machines.size >= options.max_machines) {
    return yield* unavailable(`There are ${options.max_machines} workers already.`)
  }
  const ended = yield* Deferred.make<void>()
  const machine: Machine = { child: undefined, is_stopped: false, ended }
  machines.set(worker_id, machine)
  const run = Effect.runForkWith(yield* Effect.context())
  yield* started(options, request, machine, (why) => {
    const told = Effect.logWarning(`Worker ${worker_id} ended: ${why}`)
    run(Effect.andThen(machine.is_stopped ? Effect.void : told, gone(room, worker_id, machine)))
  }).pipe(Effect.onError(() => gone(room, worker_id, machine)))
})

/** Nothing of it runs any more, nor may it come in. */
const gone = Effect.fnUntraced(function* (room: Room, worker_id: WorkerId, machine: Machine) {
  killGroup(machine)
  room.machines.delete(worker_id)
  yield* room.options.users?.dismiss(worker_id) ?? Effect.void
  yield* Deferred.succeed(machine.ended, undefined)
})

/** Has it stop, and ends it when its time is over; it answers at once. */
const stop = Effect.fnUntraced(function* ({ options, scope }: Room, machine: Machine) {
  if (machine.is_stopped) return
  machine.is_stopped = true
  machine.child?.kill("SIGTERM")
  const in_time = Effect.timeoutOption(
    Deferred.await(machine.ended),
    options.stop_ms ?? stop_ms_max,
  )
  const overdue = Effect.map(in_time, (ended) => {
    if (ended._tag === "None") killGroup(machine)
  })
  yield* Effect.forkIn(overdue, scope)
})

const endMachines = (room: Room) =>
  Effect.suspend(() => {
    room.is_closing = true
    return Effect.forEach([...room.machines.values()], (machine) => stop(room, machine), {
      discard: true,
    })
  })

const closed = Effect.fnUntraced(function* (room: Room) {
  yield* endMachines(room)
  const all = [...room.machines.values()]
  const ended = Effect.forEach(all, (machine) => Deferred.await(machine.ended), {
    concurrency: "unbounded",
    discard: true,
  })
  const wait_ms = yield* (yield* StopDeadline).work(room.options.stop_ms ?? stop_ms_max)
  yield* Effect.timeoutOption(ended, wait_ms)
  for (const machine of all) killGroup(machine)
  yield* ended
})

const unavailable = (detail: string) => Effect.fail(new WorkerUnavailable({ detail }))

/** Whatever is left of it, engines whose agent was killed too. */
const killGroup = ({ child }: Machine) => {
  if (child?.pid === undefined) return
  try {
    process.kill(-child.pid, "SIGKILL")
  } catch {
    // Nothing of it is left.
  }
}

/** Lets the worker in, and starts its agent; `onEnd` is called once, however it ends. */
const started = Effect.fnUntraced(function* (
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
      // One that ended at once reads nothing: its end tells.
      child.stdin?.on("error", () => undefined)
      child.stdin?.write(`${credentials}\n`)
      if (machine.is_stopped) child.kill("SIGTERM")
      resume(Effect.void)
    })
  })
}, Effect.uninterruptible)
