/**
 * What the process's own thread and those that answer requests for blobs say to each other, beside
 * the questions to the engine. Source: decision 0168.
 */
import type { MessagePort } from "node:worker_threads"
import type { Caller } from "#gateway/caller.ts"
import type { Failure } from "#gateway/envelope.ts"
import type { Settings } from "#schemas/settings.ts"
import type { SharedVolume, VolumeNews } from "#volume"

/** What a thread is started with. */
export interface WorkerStart {
  /** Without its secrets, which no thread is given. */
  readonly settings: Settings
  readonly node_id: string
  readonly host: string
  readonly port: number
  /** Where it takes the connections that are not for it. */
  readonly socket_path: string
  readonly volume: SharedVolume
  /** The engine is behind it. */
  readonly engine: MessagePort
  /** How many connections each thread has; the first is the process's own. */
  readonly connections: Int32Array<SharedArrayBuffer>
  /** Which of them is this one's. */
  readonly place: number
  readonly connections_max: number
  /** How many more there may be for a moment, to be told so. */
  readonly connections_spare: number
}

/** What is said to a thread. */
export type ToWorker =
  | { readonly say: "settings"; readonly settings: Settings }
  /** Undefined: nobody whom the thread may let in. How that is refused is not for it to say. */
  | { readonly say: "caller"; readonly number: number; readonly caller: Caller | undefined }
  | { readonly say: "news"; readonly news: VolumeNews }
  /** Each connection goes over with its next request. */
  | { readonly say: "retire" }
  /** No connection is taken any more; what is under way goes on, and then the thread ends. */
  | { readonly say: "close" }

/** An answer: the endpoint, its status, and how long it took. */
export type Measured = readonly [method: string, path: string, status: number, seconds: number]

/** What a thread says. */
export type FromWorker =
  | { readonly say: "listens" }
  | { readonly say: "who"; readonly number: number; readonly token: string }
  /** What it answered since it said so last; its connections have changed, or may have. */
  | { readonly say: "measured"; readonly answers: ReadonlyArray<Measured> }

/** How a request that a thread took was ended there, for the front door to word it. */
export type RefusalSaid =
  | Failure
  | {
      readonly status: number
      readonly headers: Readonly<Record<string, string>>
      readonly text: string
    }

/** What goes before the bytes of a connection that is handed over. */
export interface Preface {
  /** The other end's IP address. */
  readonly address: string
  /** Whether a hot route had its first request already. */
  readonly is_tried: boolean
  readonly refusal?: RefusalSaid
}
