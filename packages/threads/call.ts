/** Requests from this thread to a worker thread, which responds in the order of the requests. */
import { parentPort, type ResourceLimits, Worker } from "node:worker_threads"
import { causeText } from "#schemas/cause-text.ts"

export interface ThreadCallOptions {
  /** The name of the thread in errors, as in "The reading thread". */
  readonly name: string
  /** The thread's program, which calls `serveCalls`. */
  readonly program: URL
  readonly workerData?: unknown
  /** Default: `default_limits`. */
  readonly resourceLimits?: ResourceLimits
  /** A thread that takes longer to respond is terminated. Undefined: no limit. */
  readonly response_ms_max?: number
}

export interface ThreadCall<Request, Response> {
  /** Rejects with an Error that gives the reason. Its cause is the error of the thread itself. */
  readonly request: (request: Request) => Promise<Response>
  /** Ends the thread and rejects pending requests. A later request starts a new thread. */
  readonly end: () => Promise<void>
}

/** With V8's default of 16, loading a year of data keeps 25 MB more and is not faster. */
const default_limits: ResourceLimits = { maxYoungGenerationSizeMb: 8 }

type Message<Response> = { readonly response: Response } | { readonly error: string }

/**
 * The caller's side. The thread starts with the first request, and again with the next one after it
 * ended. It keeps the process alive only while a request is pending. The number of pending requests
 * is not limited.
 */
export const threadCall = <Request, Response>(
  options: ThreadCallOptions,
): ThreadCall<Request, Response> => {
  const { name, program, workerData, response_ms_max } = options
  const resourceLimits = options.resourceLimits ?? default_limits
  const pending: Array<PromiseWithResolvers<Response>> = []
  let thread: Worker | undefined

  const terminate = async (which: Worker, why: string, cause?: unknown) => {
    // The requests of an earlier thread have been rejected already.
    if (which !== thread) return
    thread = undefined
    for (const { reject } of pending.splice(0)) reject(new Error(`${name} ${why}`, { cause }))
    await which.terminate()
  }
  const start = () => {
    const started = new Worker(program, { workerData, resourceLimits })
    started.on("message", (message: Message<Response>) => {
      if (started !== thread) return
      const first = pending.shift()
      if (pending.length === 0) started.unref()
      if ("response" in message) first?.resolve(message.response)
      else first?.reject(new Error(message.error))
    })
    started.on("error", (error) => void terminate(started, `failed: ${causeText(error)}`, error))
    started.on("exit", () => void terminate(started, "ended"))
    return started
  }
  return {
    request: async (request) => {
      thread ??= start()
      const current = thread
      current.postMessage(request)
      current.ref()
      const response = Promise.withResolvers<Response>()
      pending.push(response)
      if (response_ms_max === undefined) return response.promise
      const late = `did not respond within ${response_ms_max} ms`
      const timer = setTimeout(() => void terminate(current, late), response_ms_max)
      return response.promise.finally(() => clearTimeout(timer))
    },
    end: async () => {
      if (thread !== undefined) await terminate(thread, "was stopped")
    },
  }
}

/** The thread's side. An error that `respond` throws rejects the request. */
export const serveCalls = <Request, Response>(
  respond: (request: Request) => Response,
  /** Memory of a response that is transferred instead of copied. */
  transferOf: (response: Response) => ReadonlyArray<ArrayBuffer> = () => [],
) => {
  const serve = (request: Request) => {
    const response = respond(request)
    parentPort?.postMessage({ response } satisfies Message<Response>, transferOf(response))
  }
  parentPort?.on("message", (request: Request) => {
    try {
      serve(request)
    } catch (error) {
      parentPort?.postMessage({ error: causeText(error) } satisfies Message<Response>)
    }
  })
}
