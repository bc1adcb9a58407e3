/**
 * Shares the predictor's work out to its threads. What is ready for the network goes first, as many
 * images at once as wait just then and never later for more; hidden squares go last.
 *
 * Source: plant facts 2 and 7; decision 0102.
 */
import type { Answer, Input, Predicted, Prepared, Task, ThreadOptions } from "./protocol.ts"
import { type PlantWorker, plantWorker } from "./worker.ts"

export interface PoolOptions extends Omit<ThreadOptions, "session_threads"> {
  readonly threads: Threads
  /** The others begin when the first can work and this resolves; absent: when the first can. */
  readonly others?: Promise<void> | undefined
  /** The threads' program. */
  readonly program: URL
  readonly onLost: (why: string) => void
}

/** By the tensor: probabilities, or why there are none. */
export type Rows = ReadonlyArray<Float32Array | string>

/** Which threads there are. */
export interface Threads {
  /** With a session; each of them runs the network in so many threads of its own. */
  readonly sessions: number
  readonly session_threads: number
  /** That prepare images only; where there are none, those with a session do. */
  readonly preparers: number
}

export type Failed = Extract<Answer, { readonly kind: "refused" | "failed" }>
type Told<Done> = (answer: Done | Failed) => void

interface Image {
  readonly image: Uint8Array
  readonly runs: boolean
}

/** When a thread had it: milliseconds of the process's own clock. */
interface Timed {
  readonly began_ms: number
}
/** An image that is ready for the network. */
export type Begun = Prepared & Timed
/** An image that the network saw in the same go. */
export type Ran = Predicted & Timed

/** Takes a piece of work back, if no thread has it yet: nobody is told then. */
export type Cancel = () => void

export interface Pool {
  /** Resolves when the first thread can work, which runs the network; rejects where it cannot. */
  readonly started: Promise<void>
  /** Resolves when all can. */
  readonly complete: Promise<void>
  readonly prepare: (image: Uint8Array, told: Told<Begun>) => Cancel
  /** A thread with a session that has it infers what it prepared. */
  readonly predict: (image: Uint8Array, told: Told<Begun | Ran>) => Cancel
  /** The input is handed over. */
  readonly infer: (input: Input, told: Told<Float32Array>) => Cancel
  /** One probability row for each square from one number up to another. */
  readonly hide: (rgb: Uint8Array, from: number, to: number, told: Told<Rows>) => Cancel
  readonly paint: (rgb: Uint8Array, drops: Float32Array, told: Told<Uint8Array>) => Cancel
  /** Images and inputs that no thread has, and those that one has. */
  readonly waiting: () => number
  readonly running: () => number
  /** Runs of the network so far, by the images that each had: the index. */
  readonly batches: ReadonlyArray<number>
  /** As its workers; 5 s unless given. */
  readonly end: (ms_max?: number) => Promise<void>
}

/** Milliseconds for a batch to be ended, before its thread is ended with it. */
export const end_ms_max = 5_000

interface Piece<Given, Done> {
  readonly given: Given
  readonly told: Told<Done>
}
/** In the order of arrival; what is cancelled leaves it. */
type Queue<Given, Done> = Set<Piece<Given, Done>>

/** Prepared images wait for the network only so far: 150 kB each. */
const ready_batches_max = 2

/** Files that keep a thread for a few milliseconds at most. */
const small_bytes_max = 256 * 1024

const ending: Failed = { kind: "failed", detail: "The service is ending." }

/** The answer that a task has by its kind, or why there is none. */
const unexpected = (answer: Answer): Failed =>
  answer.kind === "refused" || answer.kind === "failed"
    ? answer
    : { kind: "failed", detail: `A thread answered ${answer.kind}.` }

/** All of it, in a buffer that can be moved. */
const movable = (bytes: Uint8Array): [Uint8Array, ArrayBuffer] => {
  const { buffer, byteLength } = bytes
  const is_whole = buffer instanceof ArrayBuffer && buffer.byteLength === byteLength
  const own = is_whole ? new Uint8Array(buffer) : Uint8Array.from(bytes)
  return [own, own.buffer]
}

interface Queues {
  readonly images: Queue<Image, Begun | Ran>
  readonly inputs: Queue<Input, Float32Array>
  readonly squares: Queue<Task, Rows>
  readonly paintings: Queue<Task, Uint8Array>
}

const first = <Given, Done>(queue: Queue<Given, Done>): Piece<Given, Done> | undefined => {
  const [piece] = queue
  if (piece !== undefined) queue.delete(piece)
  return piece
}

/** Each answers whether it had something for a worker that is free. */
const givers = ({ images, inputs, squares, paintings }: Queues, batch_max: number) => {
  let running = 0
  const batches = new Array<number>(batch_max + 1).fill(0)

  const giveInputs = (worker: PlantWorker): boolean => {
    const batch = [...inputs.values().take(worker.batch())]
    if (batch.length === 0) return false
    for (const piece of batch) inputs.delete(piece)
    running += batch.length
    batches[batch.length] = (batches[batch.length] ?? 0) + 1
    const own = batch.map(({ given }) => given)
    // Each was made in a thread for itself, or copied out of a request.
    const buffers = own.map(({ buffer }) => buffer as ArrayBuffer)
    worker.give({ kind: "infer", inputs: own }, buffers, true, (answer) => {
      running -= batch.length
      for (const [n, { told }] of batch.entries()) {
        const output = answer.kind === "inferred" ? answer.outputs[n] : undefined
        if (output instanceof Float32Array) told(output)
        else told(output === undefined ? unexpected(answer) : { kind: "failed", detail: output })
      }
    })
    return true
  }
  const giveImage = (worker: PlantWorker): boolean => {
    const piece = first(images)
    if (piece === undefined) return false
    const [image, buffer] = movable(piece.given.image)
    const runs = piece.given.runs && worker.batch() > 0
    const began_ms = performance.now()
    running++
    const is_quick = image.length <= small_bytes_max
    worker.give({ kind: "prepare", image, runs }, [buffer], is_quick, (answer) => {
      running--
      if (answer.kind === "predicted") batches[1] = (batches[1] ?? 0) + 1
      const is_done = answer.kind === "prepared" || answer.kind === "predicted"
      piece.told(is_done ? { ...answer, began_ms } : unexpected(answer))
    })
    return true
  }
  const givePainting = (worker: PlantWorker): boolean => {
    const piece = first(paintings)
    if (piece === undefined) return false
    worker.give(piece.given, [], false, (answer) => {
      piece.told(answer.kind === "painted" ? answer.png : unexpected(answer))
    })
    return true
  }
  const giveSquares = (worker: PlantWorker): boolean => {
    const piece = first(squares)
    if (piece === undefined) return false
    worker.give(piece.given, [], false, (answer) => {
      piece.told(answer.kind === "inferred" ? answer.outputs : unexpected(answer))
    })
    return true
  }
  const gives = { giveInputs, giveImage, givePainting, giveSquares }
  return { ...gives, batches, running: () => running }
}

const newQueues = (): Queues => ({
  images: new Set(),
  inputs: new Set(),
  squares: new Set(),
  paintings: new Set(),
})

const isSmallNext = ([next]: Queues["images"]) =>
  next !== undefined && next.given.image.length <= small_bytes_max

/** Whatever waits is told that it will not be done. */
const endAll = ({ images, inputs, squares, paintings }: Queues) => {
  for (const queue of [images, inputs, squares, paintings]) {
    for (const { told } of queue) told(ending)
    queue.clear()
  }
}

/**
 * The threads, of which the first has the network. The others begin when it works, or later: they
 * would only keep it, and the rest of the server, waiting.
 */
const startThreads = (options: PoolOptions, onFree: () => void) => {
  const { threads, others, program, onLost, ...thread } = options
  let count = 0
  const make = (session_threads: number, after?: Promise<void>) => {
    const name = `plant ${++count}`
    const own = { ...thread, session_threads }
    return plantWorker({ name, program, onLost, onFree, after, thread: own })
  }
  const leader = make(threads.session_threads)
  const after = leader.started.then(() => others)
  // Whoever waits for the threads is told.
  after.catch(() => undefined)
  const follow = (count: number, session_threads: number) =>
    Array.from({ length: count }, () => make(session_threads, after))
  const of_network = [leader, ...follow(threads.sessions - 1, threads.session_threads)]
  const of_images = follow(threads.preparers, 0)
  const all = [...of_network, ...of_images].map(({ started }) => started)
  const complete = Promise.all(all).then(() => undefined)
  complete.catch(() => undefined)
  return { of_network, of_images, started: leader.started, complete }
}

/** Starts the threads; each is given something whenever it is free and there is something. */
export const plantPool = (options: PoolOptions): Pool => {
  const { threads, batch_max } = options
  const queues = newQueues()
  const { images, inputs, squares, paintings } = queues
  const give = givers(queues, batch_max)
  const ready_max = ready_batches_max * batch_max * threads.sessions
  const has_own_preparers = threads.preparers > 0
  let is_ended = false

  const put = <Given, Done>(queue: Queue<Given, Done>, given: Given, told: Told<Done>): Cancel => {
    const piece = { given, told }
    if (is_ended) {
      told(ending)
      return () => undefined
    }
    queue.add(piece)
    dispatch()
    return () => void queue.delete(piece)
  }
  const prepares = (worker: PlantWorker): boolean =>
    (inputs.size < ready_max && give.giveImage(worker)) || give.givePainting(worker)
  const dispatch = () => {
    if (has_own_preparers && inputs.size + give.running() === 0) {
      // An image alone is spared a change of threads, where it is small.
      const free = of_network.find((worker) => worker.isFree())
      if (free && isSmallNext(images)) give.giveImage(free)
    }
    for (const worker of of_images) if (worker.isFree()) prepares(worker)
    for (const worker of of_network) {
      if (!worker.isFree() || give.giveInputs(worker)) continue
      if (has_own_preparers || !prepares(worker)) give.giveSquares(worker)
    }
    // Whoever will be done soon has the next at hand, and does not stop for it.
    for (const worker of of_network) {
      if (!worker.isQuick()) continue
      const has_batch = inputs.size >= worker.batch() && give.giveInputs(worker)
      if (!has_batch && !has_own_preparers && isSmallNext(images)) give.giveImage(worker)
    }
  }
  const crew = startThreads(options, () => dispatch())
  const { of_network, of_images } = crew
  const workers = [...of_network, ...of_images]

  return {
    started: crew.started,
    complete: crew.complete,
    prepare: (image, told) =>
      put(images, { image, runs: false }, (answer) =>
        told(answer.kind === "predicted" ? unexpected(answer) : answer),
      ),
    predict: (image, told) => put(images, { image, runs: true }, told),
    infer: (input, told) => put(inputs, input, told),
    hide: (rgb, from, to, told) => put(squares, { kind: "hide", rgb, from, to }, told),
    paint: (rgb, drops, told) => put(paintings, { kind: "paint", rgb, drops }, told),
    waiting: () => images.size + inputs.size,
    running: give.running,
    batches: give.batches,
    end: async (ms_max = end_ms_max) => {
      is_ended = true
      endAll(queues)
      await Promise.all(workers.map((worker) => worker.end(ms_max)))
    },
  }
}
