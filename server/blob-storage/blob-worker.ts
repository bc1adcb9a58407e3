/**
 * The program of a thread that answers requests for blobs: the hot routes by the rules of the front
 * door, over an engine that reads by itself and has all else done by the process's own thread.
 *
 * Source: decision 0168.
 */
import { type MessagePort, parentPort, workerData } from "node:worker_threads"
import { Clock, Deferred, Effect, Layer } from "effect"
import { HttpServerResponse } from "effect/http"
import { remoteEngine } from "#adapters/blob-storage/engine/remote.ts"
import { threadEngine } from "#adapters/blob-storage/engine/thread.ts"
import { workerCallers } from "#adapters/blob-storage/worker/callers.ts"
import { workerListener } from "#adapters/blob-storage/worker/listener.ts"
import type {
  FromWorker,
  Measured,
  RefusalSaid,
  ToWorker,
  WorkerStart,
} from "#adapters/blob-storage/worker/message.ts"
import { headers_timeout_ms, keep_alive_ms } from "#adapters/http/still-connection.ts"
import { httpTransport } from "#adapters/http/transport.ts"
import { logging } from "#adapters/logging.ts"
import { BlobApi } from "#gateway/blob-storage/apis/blobs.ts"
import { hotBlobs } from "#gateway/blob-storage/direct/routes.ts"
import type { HotRefusal } from "#gateway/direct.ts"
import { bearerOf } from "#gateway/door/admission.ts"
import { deadlines, deadlinesOf } from "#gateway/door/deadlines.ts"
import { type HotDoor, hotDoor } from "#gateway/door/direct.ts"
import type { Door } from "#gateway/door/parts.ts"
import { rateLimiter } from "#gateway/door/rate-limit.ts"
import { type Mounted, mount, routesOf } from "#gateway/routes.ts"
import { Transport } from "#gateway/transport.ts"
import { makeSharedReads } from "#volume"

/** How long answers are counted here before the process's own thread is told of them. */
const counting_ms = 100

const said = (refusal: HotRefusal): RefusalSaid => {
  if (!HttpServerResponse.isHttpServerResponse(refusal)) return refusal
  const { status, headers, body } = refusal
  const bytes = body._tag === "Uint8Array" ? body.body : new Uint8Array(0)
  return { status, headers: { ...headers }, text: new TextDecoder().decode(bytes) }
}

/** Gathers what is measured, and tells of it ten times a second at most. */
const measuring = (tell: (message: FromWorker) => void) => {
  let answers: Array<Measured> = []
  let is_waiting = false
  const post = () => {
    is_waiting = false
    tell({ say: "measured", answers })
    answers = []
  }
  /** Connections came or went. */
  const moved = () => {
    if (!is_waiting) setTimeout(post, counting_ms).unref()
    is_waiting = true
  }
  const add = (...answer: Measured) => {
    answers.push(answer)
    moved()
  }
  return { add, moved }
}

/** The hot routes of blobs, as the thread's only service; nothing else of it is ever asked. */
const mounted = ({ settings, node_id, engine: port, volume }: WorkerStart) => {
  const remote = remoteEngine(port)
  const reads = makeSharedReads(volume, remote.pin)
  const hot = hotBlobs({
    engine: threadEngine(remote, reads),
    active_nodes: Effect.promise(remote.activeNodes),
    node_id,
    int64: settings.json.int64,
    json_digits_max: settings.blob.json_body_bytes_max,
  })
  const service = mount({
    name: "blob-storage",
    api: BlobApi,
    routes: Effect.succeed(Effect.never),
    hot: Effect.succeed(hot),
  })
  return { reads, service }
}

/** The front door as the hot routes need it. */
const makeDoor = Effect.fnUntraced(function* (
  service: Mounted,
  parts: Pick<Door, "settings" | "authenticate"> & { readonly measured: (...of: Measured) => void },
) {
  const { settings, authenticate, measured } = parts
  const door: Door = {
    settings,
    authenticate,
    transport: yield* Transport,
    // No route of blobs has a rule: callers have scopes.
    rules: () => new Map(),
    tickets: undefined,
    clock: yield* Clock.Clock,
    in_flight: yield* deadlines(() => deadlinesOf(settings())),
    closing: yield* Deferred.make<void>(),
    find: routesOf([service]),
    take: rateLimiter(),
    metrics: {
      add: ({ method, path }, status, seconds) => measured(method, path, status, seconds),
      text: () => "",
    },
    kept: { keeping: () => (_, app) => app, serve: () => false },
  }
  return door
})

type Callers = ReturnType<typeof workerCallers>

/** Requests of callers that are known; the others' wait until they are, or go over. */
const serving =
  ({ serve }: HotDoor, { whenKnown }: Callers): HotDoor["serve"] =>
  (request, response, headers, plain) => {
    const { authorization } = headers
    const token = authorization === undefined ? "" : bearerOf(authorization)
    if (token === undefined) plain(request, response)
    else whenKnown(token, () => serve(request, response, headers, plain))
  }

const main = Effect.fnUntraced(function* (
  parent: MessagePort,
  start: WorkerStart,
  current: { settings: WorkerStart["settings"] },
) {
  const tell = (message: FromWorker) => parent.postMessage(message)
  const { reads, service } = mounted(start)
  const callers = workerCallers((number, token) => tell({ say: "who", number, token }))
  const { add: measured, moved } = measuring(tell)
  const mount = yield* service
  const settings = () => current.settings
  const { authenticate } = callers
  const door = yield* makeDoor(mount, { settings, authenticate, measured })
  const hot = yield* hotDoor(door, [mount])
  const listener = yield* Effect.promise(() =>
    workerListener(start, {
      serve: serving(hot, callers),
      refusalOf: (request) => {
        const refusal = hot.refusalOf(request)
        return refusal && said(refusal)
      },
      moved,
      silence_ms: headers_timeout_ms,
      keep_alive_ms,
      patience_ms: start.settings.api.request_timeout_seconds * 1000,
    }),
  )
  const end = async () => {
    await listener.close()
    // What is measured is told before.
    setTimeout(() => process.exit(0), counting_ms)
  }
  parent.on("message", (message: ToWorker) => {
    if (message.say === "settings") current.settings = message.settings
    else if (message.say === "caller") callers.told(message.number, message.caller)
    else if (message.say === "news") reads.hear(message.news)
    else if (message.say === "retire") listener.retire()
    else void end()
  })
  tell({ say: "listens" })
  return yield* Effect.never
})

if (parentPort !== null) {
  // What `workerThread` starts it with.
  const start = workerData as WorkerStart
  const current = { settings: start.settings }
  const around = Layer.merge(
    httpTransport,
    logging(() => current.settings.log.level),
  )
  // What it fails with ends the thread, and is told of by that.
  void Effect.runPromise(
    main(parentPort, start, current).pipe(Effect.scoped, Effect.provide(around)),
  )
}
