/**
 * The threads beside the process's own that answer requests for blobs (`blob.workers`).
 *
 * Source: decision 0168.
 */
import type { Socket } from "node:net"
import { Context, Effect, Metric, Schema } from "effect"
import type { EngineDesk } from "#adapters/blob-storage/engine/desk.ts"
import { connectionsMax, spare_max } from "#adapters/http/connection-limit.ts"
import type { FrontDoor } from "#gateway/door.ts"
import type { Authenticate } from "#gateway/identity.ts"
import { StopDeadline, work_ms } from "#processes"
import { causeText } from "#schemas/cause-text.ts"
import { counter } from "#schemas/metric.ts"
import type { Settings } from "#schemas/settings.ts"
import type { Preface, WorkerStart } from "./message.ts"
import { type WorkerThread, workerThread } from "./thread.ts"
import { tunnelEnd } from "./tunnel.ts"

/** A thread does not start, or cannot listen. */
export class WorkersFailure extends Schema.TaggedError<WorkersFailure>()("WorkersFailure", {
  message: Schema.String,
}) {}

export interface BlobWorkersOptions {
  /** The thread's program: a file's path. */
  readonly program: string
  readonly settings: () => Settings
  readonly node_id: string
  readonly desk: EngineDesk
  readonly authenticate: Authenticate
  readonly door: Pick<FrontDoor, "measured">
  /** The port that the process listens on. */
  readonly port: number
  /** Takes over a connection, with its first bytes still to be read. */
  readonly adopt: (socket: Socket, preface: Preface) => void
}

const answers_total = counter(
  "almanac_blob_worker_answers_total",
  "Requests for blobs answered by each thread beside the process's own.",
)
const countAnswers = (place: number, count: number) =>
  Metric.withAttributes(answers_total, { worker: `${place}` }).updateUnsafe(count, Context.empty())

/** Who shows a token, as a thread asks: "" is none. */
const whoWith =
  (authenticate: Authenticate, run: <A>(effect: Effect.Effect<A>) => Promise<A>) =>
  (token: string) =>
    run(
      authenticate({ token: token === "" ? undefined : () => token }).pipe(
        Effect.match({ onFailure: () => undefined, onSuccess: (caller) => caller }),
      ),
    )

/**
 * Room for the threads of these settings, none yet. When the scope closes it waits for those that
 * were started: what has the engine and what has the listener are to be closed after and before it.
 */
export const blobWorkers = Effect.fnUntraced(function* ({ blob, api }: Settings) {
  const connections = new Int32Array(
    new SharedArrayBuffer(blob.workers * Int32Array.BYTES_PER_ELEMENT),
  )
  const threads: Array<WorkerThread> = []
  let moved: () => void = () => undefined
  yield* Effect.addFinalizer(
    Effect.fnUntraced(function* () {
      const wait_ms = yield* (yield* StopDeadline).work(work_ms)
      const all = Effect.promise(() => Promise.all(threads.map(({ ended }) => ended)))
      yield* Effect.timeoutOption(all, wait_ms)
      yield* Effect.promise(() => Promise.all(threads.map(({ kill }) => kill())))
    }),
  )
  /** Starts them; from then on they answer, until the scope closes. */
  const start = Effect.fnUntraced(function* (options: BlobWorkersOptions) {
    const { program, settings, node_id, desk, door, port, adopt } = options
    const socket_path = yield* tunnelEnd(adopt)
    const around = yield* Effect.context<never>()
    const run = Effect.runForkWith(around)
    const who = whoWith(options.authenticate, Effect.runPromiseWith(around))
    const common: Omit<WorkerStart, "place" | "engine" | "volume" | "settings"> = {
      node_id,
      host: api.bind_host,
      port,
      socket_path,
      connections,
      connections_max: connectionsMax(api),
      connections_spare: spare_max,
    }
    for (let place = 1; place < blob.workers; place++) {
      const thread = workerThread({
        program,
        start: { ...common, place },
        settings,
        desk,
        who,
        measured: (answers) => {
          for (const answer of answers) door.measured(...answer)
          countAnswers(place, answers.length)
          moved()
        },
        report: (problem) => void run(Effect.logError(problem)),
      })
      threads.push(thread)
    }
    const retire = () => {
      for (const thread of threads) thread.retire()
    }
    const close = () => {
      for (const thread of threads) thread.close()
    }
    yield* Effect.addFinalizer(() => Effect.sync(close))
    yield* Effect.tryPromise({
      try: () => Promise.all(threads.map(({ started }) => started)),
      catch: (cause) => new WorkersFailure({ message: `blob.workers: ${causeText(cause)}` }),
    })
    return { retire }
  })
  return {
    /** Calls it whenever `open` may have changed. */
    onMove: (listener: () => void) => {
      moved = listener
    },
    /** Connections that threads have, the process's own left out. */
    open: () => connections.subarray(1).reduce((sum, count) => sum + count, 0),
    /** Notes how many the process's own thread has. */
    note: (count: number) => Atomics.store(connections, 0, count),
    start,
  }
})

export type BlobWorkers = Effect.Success<ReturnType<typeof blobWorkers>>
