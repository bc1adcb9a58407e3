/**
 * The registry over a mirror, the file that `almanac carriers import` writes from FMCSA's public
 * files.
 *
 * A thread reads it and renders the rows. The next search uses a replaced file.
 * Source: decisions of document 3, carrier registry; decision 0092.
 */
import { Clock, Effect, Layer, Option, Stream } from "effect"
import { type Piece, Registry, SearchFailed } from "#actors/carrier-search/registry.ts"
import type { Mirror } from "#adapters/carrier-search/mirror-file.ts"
import type {
  MirrorRequest,
  MirrorResponse,
  RenderedPiece,
} from "#adapters/carrier-search/mirror-thread.ts"
import { type Range, total } from "#schemas/carrier-search/carrier.ts"
import type { Format } from "#schemas/carrier-search/format.ts"
import type { Source } from "#schemas/carrier-search/source.ts"
import { type ThreadCall, type ThreadCallOptions, threadCall } from "#threads"

export { hasMirror, mirrorFile } from "#adapters/carrier-search/mirror-file.ts"

export interface RegistryMirrorOptions {
  /** The path, which need not exist yet. */
  readonly path: string
  /** The thread's program and response timeout, for tests. */
  readonly thread?: Partial<Pick<ThreadCallOptions, "response_ms_max" | "program">>
}

const name = "the mirror thread"
const program = new URL("./mirror-thread.ts", import.meta.url)
/** A piece takes a millisecond, 100 ms on a cold disk. */
const response_ms_max = 30_000
/** Rows are sent at once, so the thread needs hardly any memory. */
const resourceLimits = { maxYoungGenerationSizeMb: 4 }

/** The message for clients, without internal errors of the thread. */
const publicMessage = (error: unknown) =>
  error instanceof Error && error.cause === undefined ? error.message : `${name} failed`

const pieceOf = (response: MirrorResponse): RenderedPiece => {
  if ("piece" in response) return response.piece
  throw new Error(`${name} sent an unexpected response`)
}

/** Requests the next piece early, so that the thread works while rows are sent. */
const search = (
  thread: ThreadCall<MirrorRequest, MirrorResponse>,
  id: number,
  range: Range,
  format: Format,
) => {
  let pending: Promise<RenderedPiece> | undefined
  let done = 0
  const send = (request: MirrorRequest) => {
    pending = thread.request(request).then(pieceOf)
    // The rejection of an abandoned search must not be unhandled.
    pending.catch(() => undefined)
    return pending
  }
  const failed = (error: unknown) =>
    new SearchFailed({
      failed: total(range) - done,
      first: range.start + done,
      reason: publicMessage(error),
    })
  const next: Effect.Effect<Piece, SearchFailed> = Effect.tryPromise({
    try: async () => {
      const piece = await (pending ?? send({ id, begin: { range, format } }))
      done = piece.done
      if (done < total(range)) void send({ id, next: true })
      return piece
    },
    catch: failed,
  })
  return {
    pieces: Stream.paginate(0, () =>
      Effect.map(next, (piece) => [
        [piece],
        piece.done < total(range) ? Option.some(piece.done) : Option.none<number>(),
      ]),
    ),
    end: Effect.sync(() => {
      // A pending response arrives first and is dropped.
      if (done < total(range)) thread.request({ id, end: true }).catch(() => undefined)
    }),
  }
}

const oldest = ({ sources }: Mirror) => sources.map(({ as_of }) => as_of).toSorted()[0] ?? null

const instantOf = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString())

const unknown = { carriers: null, dockets: null, as_of: null, imported_at: null, is_demo: false }

/** The contents and age of the mirror. */
const describeMirror = (mirror: Mirror | undefined) => {
  if (mirror === undefined) return unknown
  const { carriers, numbers, imported_at, is_demo } = mirror
  return { carriers, dockets: numbers, as_of: oldest(mirror), imported_at, is_demo }
}

/** The registry as a layer. Its thread starts with the first request and stops with the layer. */
export const registryMirror = ({ path, thread }: RegistryMirrorOptions): Layer.Layer<Registry> =>
  Layer.effect(
    Registry,
    Effect.gen(function* () {
      const clock = yield* Clock.Clock
      const call = yield* Effect.acquireRelease(
        Effect.sync(() =>
          threadCall<MirrorRequest, MirrorResponse>({
            name,
            program: thread?.program ?? program,
            workerData: path,
            resourceLimits,
            response_ms_max: thread?.response_ms_max ?? response_ms_max,
          }),
        ),
        ({ end }) => Effect.promise(end),
      )
      let searches = 0
      let last_response_ms: number | null = null
      let last_error: { readonly at: number; readonly reason: string } | null = null
      const recordSuccess = () => {
        last_response_ms = clock.currentTimeMillisUnsafe()
      }
      const recordError = (reason: string) => {
        last_error = { at: clock.currentTimeMillisUnsafe(), reason }
      }

      const pieces = (range: Range, format: Format) =>
        Stream.unwrap(
          Effect.acquireRelease(
            Effect.sync(() => search(call, ++searches, range, format)),
            ({ end }) => end,
          ).pipe(
            Effect.map(({ pieces }) =>
              pieces.pipe(
                Stream.tap(() => Effect.sync(recordSuccess)),
                Stream.tapError(({ reason }) => Effect.sync(() => recordError(reason))),
              ),
            ),
          ),
        )
      const about = async (): Promise<{ mirror?: Mirror; detail: string | null }> => {
        try {
          const response = await call.request({ about: true })
          return "mirror" in response ? { mirror: response.mirror, detail: null } : { detail: null }
        } catch (error) {
          return { detail: publicMessage(error) }
        }
      }
      const source = Effect.map(
        Effect.promise(about),
        ({ mirror, detail }): Source => ({
          registry: "mirror",
          is_healthy: detail === null,
          detail,
          ...describeMirror(mirror),
          concurrency: null,
          last_answer_at: instantOf(last_response_ms),
          last_error_at: instantOf(last_error?.at ?? null),
          last_error: last_error?.reason ?? null,
        }),
      )
      return Registry.of({ search: pieces, source })
    }),
  )
