/**
 * Assigns the predictor's work to threads. Images ready for the network go first, in batches of
 * all that are waiting, without waiting for more. Occluded squares go last.
 *
 * Source: plant facts 2 and 7; decision 0102.
 */
import type { Input, Predicted, Prepared, Task, TaskResult, ThreadOptions } from "./protocol.ts"
import { type PoolWorker, poolWorker } from "./worker.ts"

export interface PoolOptions extends Omit<ThreadOptions, "session_threads"> {
  readonly threads: Threads
  /** Delays the start of all threads but the first. They always start after the first is ready. */
  readonly others?: Promise<void> | undefined
  /** The program of the threads. */
  readonly program: URL
  readonly onLost: (why: string) => void
}

/** For each input, probabilities or an error. */
export type Rows = ReadonlyArray<Float32Array | string>

/** The number of threads of each kind. */
export interface Threads {
  /** Threads with a session, each with `session_threads` threads of ONNX Runtime. */
  readonly sessions: number
  readonly session_threads: number
  /** Threads that only prepare images. Without any, threads with a session prepare them. */
  readonly preparers: number
}

export type Failure = Extract<TaskResult, { readonly kind: "refused" | "failed" }>
type Callback<Done> = (result: Done | Failure) => void

interface Image {
  readonly image: Uint8Array
  readonly runs: boolean
}

/** When a thread started the task, by `performance.now()`. */
interface Timed {
  readonly began_ms: number
}
/** A decoded and resized image. */
export type PreparedImage = Prepared & Timed
/** An image that the thread also ran the network on. */
export type PredictedImage = Predicted & Timed

/** Cancels a job that no thread has started; its callback is then never called. */
export type Cancel = () => void

export interface Pool {
  /** Resolves when the first thread, which has a session, is ready; rejects if it cannot start. */
  readonly started: Promise<void>
  /** Resolves when all threads are ready. */
  readonly complete: Promise<void>
  readonly prepare: (image: Uint8Array, callback: Callback<PreparedImage>) => Cancel
  /** Like `prepare`; a thread with a session also runs the network. */
  readonly predict: (
    image: Uint8Array,
    callback: Callback<PreparedImage | PredictedImage>,
  ) => Cancel
  /** Transfers the input. */
  readonly infer: (input: Input, callback: Callback<Float32Array>) => Cancel
  /** Returns one row for each occluded square from `from` to `to`. */
  readonly occlude: (rgb: Uint8Array, from: number, to: number, callback: Callback<Rows>) => Cancel
  readonly renderHeatmap: (
    rgb: Uint8Array,
    drops: Float32Array,
    callback: Callback<Uint8Array>,
  ) => Cancel
  /** Images and inputs that are queued, and those that a thread is working on. */
  readonly waiting: () => number
  readonly running: () => number
  /** The number of runs of the network by batch size, the index. */
  readonly batches: ReadonlyArray<number>
  /** Stops all threads, by default within 5 s. */
  readonly end: (ms_max?: number) => Promise<void>
}

/** How long a thread may take to finish its batch before it is terminated. */
export const end_ms_max = 5_000

interface Job<Given, Done> {
  readonly input: Given
  readonly callback: Callback<Done>
}
/** In order of arrival. */
type Queue<Given, Done> = Set<Job<Given, Done>>

/** Bounds the prepared images that wait for the network, 150 kB each. */
const ready_batches_max = 2

/** Smaller files are decoded within a few milliseconds. */
const small_bytes_max = 256 * 1024

const shutting_down: Failure = { kind: "failed", detail: "The service is ending." }

/** Maps a result of another kind to a failure. */
const unexpected = (result: TaskResult): Failure =>
  result.kind === "refused" || result.kind === "failed"
    ? result
    : { kind: "failed", detail: `A thread returned ${result.kind}.` }

/** The bytes in their own buffer, which can be transferred. */
const transferable = (bytes: Uint8Array): [Uint8Array, ArrayBuffer] => {
  const { buffer, byteLength } = bytes
  const is_whole = buffer instanceof ArrayBuffer && buffer.byteLength === byteLength
  const own = is_whole ? new Uint8Array(buffer) : Uint8Array.from(bytes)
  return [own, own.buffer]
}

interface Queues {
  readonly images: Queue<Image, PreparedImage | PredictedImage>
  readonly inputs: Queue<Input, Float32Array>
  readonly squares: Queue<Task, Rows>
  readonly heatmaps: Queue<Task, Uint8Array>
}

const takeFirst = <Given, Done>(queue: Queue<Given, Done>): Job<Given, Done> | undefined => {
  const [job] = queue
  if (job !== undefined) queue.delete(job)
  return job
}

/** Each function assigns work to a worker and returns whether there was any. */
const assigners = ({ images, inputs, squares, heatmaps }: Queues, batch_max: number) => {
  let running = 0
  const batches = new Array<number>(batch_max + 1).fill(0)

  const assignBatch = (worker: PoolWorker): boolean => {
    const batch = [...inputs.values().take(worker.batch())]
    if (batch.length === 0) return false
    for (const job of batch) inputs.delete(job)
    running += batch.length
    batches[batch.length] = (batches[batch.length] ?? 0) + 1
    const own = batch.map(({ input }) => input)
    // Each input owns its buffer.
    const buffers = own.map(({ buffer }) => buffer as ArrayBuffer)
    worker.assign({ kind: "infer", inputs: own }, buffers, true, (result) => {
      running -= batch.length
      for (const [n, { callback }] of batch.entries()) {
        const output = result.kind === "inferred" ? result.outputs[n] : undefined
        if (output instanceof Float32Array) callback(output)
        else
          callback(output === undefined ? unexpected(result) : { kind: "failed", detail: output })
      }
    })
    return true
  }
  const assignImage = (worker: PoolWorker): boolean => {
    const job = takeFirst(images)
    if (job === undefined) return false
    const [image, buffer] = transferable(job.input.image)
    const runs = job.input.runs && worker.batch() > 0
    const began_ms = performance.now()
    running++
    const is_quick = image.length <= small_bytes_max
    worker.assign({ kind: "prepare", image, runs }, [buffer], is_quick, (result) => {
      running--
      if (result.kind === "predicted") batches[1] = (batches[1] ?? 0) + 1
      const is_done = result.kind === "prepared" || result.kind === "predicted"
      job.callback(is_done ? { ...result, began_ms } : unexpected(result))
    })
    return true
  }
  const assignHeatmap = (worker: PoolWorker): boolean => {
    const job = takeFirst(heatmaps)
    if (job === undefined) return false
    worker.assign(job.input, [], false, (result) => {
      job.callback(result.kind === "heatmap" ? result.png : unexpected(result))
    })
    return true
  }
  const assignSquares = (worker: PoolWorker): boolean => {
    const job = takeFirst(squares)
    if (job === undefined) return false
    worker.assign(job.input, [], false, (result) => {
      job.callback(result.kind === "inferred" ? result.outputs : unexpected(result))
    })
    return true
  }
  const functions = { assignBatch, assignImage, assignHeatmap, assignSquares }
  return { ...functions, batches, running: () => running }
}

const newQueues = (): Queues => ({
  images: new Set(),
  inputs: new Set(),
  squares: new Set(),
  heatmaps: new Set(),
})

const isSmallNext = ([next]: Queues["images"]) =>
  next !== undefined && next.input.image.length <= small_bytes_max

/** Fails everything that is queued. */
const failAll = ({ images, inputs, squares, heatmaps }: Queues) => {
  for (const queue of [images, inputs, squares, heatmaps]) {
    for (const { callback } of queue) callback(shutting_down)
    queue.clear()
  }
}

/**
 * Starts the threads. The first one has a session; the others start after it is ready, so that they
 * do not slow it and the rest of the server down.
 */
const startThreads = (options: PoolOptions, onFree: () => void) => {
  const { threads, others, program, onLost, ...thread } = options
  let count = 0
  const startWorker = (session_threads: number, after?: Promise<void>) => {
    const name = `plant ${++count}`
    const thread_options = { ...thread, session_threads }
    return poolWorker({ name, program, onLost, onFree, after, thread: thread_options })
  }
  const first = startWorker(threads.session_threads)
  const after = first.started.then(() => others)
  // Avoids an unhandled rejection if the promise is never awaited.
  after.catch(() => undefined)
  const startOthers = (count: number, session_threads: number) =>
    Array.from({ length: count }, () => startWorker(session_threads, after))
  const session_workers = [first, ...startOthers(threads.sessions - 1, threads.session_threads)]
  const image_workers = startOthers(threads.preparers, 0)
  const all = [...session_workers, ...image_workers].map(({ started }) => started)
  const complete = Promise.all(all).then(() => undefined)
  complete.catch(() => undefined)
  return { session_workers, image_workers, started: first.started, complete }
}

/** Starts the threads and assigns work whenever one is free. */
export const predictorPool = (options: PoolOptions): Pool => {
  const { threads, batch_max } = options
  const queues = newQueues()
  const { images, inputs, squares, heatmaps } = queues
  const assign = assigners(queues, batch_max)
  const ready_max = ready_batches_max * batch_max * threads.sessions
  const has_own_preparers = threads.preparers > 0
  let is_ended = false

  const enqueue = <Given, Done>(
    queue: Queue<Given, Done>,
    input: Given,
    callback: Callback<Done>,
  ): Cancel => {
    const job = { input, callback }
    if (is_ended) {
      callback(shutting_down)
      return () => undefined
    }
    queue.add(job)
    dispatch()
    return () => void queue.delete(job)
  }
  const assignPreparation = (worker: PoolWorker): boolean =>
    (inputs.size < ready_max && assign.assignImage(worker)) || assign.assignHeatmap(worker)
  const dispatch = () => {
    if (has_own_preparers && inputs.size + assign.running() === 0) {
      // A small image that arrives alone is prepared and run in one thread.
      const free = session_workers.find((worker) => worker.isFree())
      if (free && isSmallNext(images)) assign.assignImage(free)
    }
    for (const worker of image_workers) if (worker.isFree()) assignPreparation(worker)
    for (const worker of session_workers) {
      if (!worker.isFree() || assign.assignBatch(worker)) continue
      if (has_own_preparers || !assignPreparation(worker)) assign.assignSquares(worker)
    }
    // A thread that will be done soon gets its next task now, so that it need not wait.
    for (const worker of session_workers) {
      if (!worker.isQuick()) continue
      const has_batch = inputs.size >= worker.batch() && assign.assignBatch(worker)
      if (!has_batch && !has_own_preparers && isSmallNext(images)) assign.assignImage(worker)
    }
  }
  const started_threads = startThreads(options, () => dispatch())
  const { session_workers, image_workers } = started_threads
  const workers = [...session_workers, ...image_workers]

  return {
    started: started_threads.started,
    complete: started_threads.complete,
    prepare: (image, callback) =>
      enqueue(images, { image, runs: false }, (result) =>
        callback(result.kind === "predicted" ? unexpected(result) : result),
      ),
    predict: (image, callback) => enqueue(images, { image, runs: true }, callback),
    infer: (input, callback) => enqueue(inputs, input, callback),
    occlude: (rgb, from, to, callback) =>
      enqueue(squares, { kind: "occlude", rgb, from, to }, callback),
    renderHeatmap: (rgb, drops, callback) =>
      enqueue(heatmaps, { kind: "heatmap", rgb, drops }, callback),
    waiting: () => images.size + inputs.size,
    running: assign.running,
    batches: assign.batches,
    end: async (ms_max = end_ms_max) => {
      is_ended = true
      failAll(queues)
      await Promise.all(workers.map((worker) => worker.end(ms_max)))
    },
  }
}
