/**
 * The registry of a mirror: a file that `almanac carriers import` made of FMCSA's public files.
 *
 * It is read in a thread, which makes the rows too; a new file is seen by the next search.
 * Source: decisions of document 3, carrier registry; decision 0092.
 */
import { Clock, Effect, Layer, Option, Stream } from "effect"
import { type Piece, Registry, SearchFailed } from "#actors/carrier-search/registry.ts"
import type { Mirror } from "#adapters/carrier-search/mirror-file.ts"
import type { Answer, MadePiece, Question } from "#adapters/carrier-search/mirror-thread.ts"
import { type Range, total } from "#schemas/carrier-search/carrier.ts"
import type { Format } from "#schemas/carrier-search/format.ts"
import type { Source } from "#schemas/carrier-search/source.ts"
import { type ThreadCall, type ThreadCallOptions, threadCall } from "#threads"

export { hasMirror, mirrorFile } from "#adapters/carrier-search/mirror-file.ts"

export interface RegistryMirrorOptions {
  /** Where the file is, or will be. */
  readonly path: string
  /** The thread's program and how long it may take for a piece: of tests alone. */
  readonly thread?: Partial<Pick<ThreadCallOptions, "program" | "response_ms_max">>
}

const name = "the mirror's thread"
const program = new URL("./mirror-thread.ts", import.meta.url)
/** A piece takes a millisecond, a cold disk a hundred: a thread so late never answers. */
const response_ms_max = 30_000
/** Rows leave as they are made: the thread holds next to nothing. */
const resourceLimits = { maxYoungGenerationSizeMb: 4 }

/** For those who search: what the thread itself failed of is none of theirs. */
const messageOf = (error: unknown) =>
  error instanceof Error && error.cause === undefined ? error.message : `${name} failed`

const pieceIn = (answer: Answer): MadePiece => {
  if ("piece" in answer) return answer.piece
  throw new Error(`${name} answered something else`)
}

/** Asks for a piece before it is wanted, so that the thread works while its rows are sent. */
const search = (thread: ThreadCall<Question, Answer>, id: number, range: Range, format: Format) => {
  let waiting: Promise<MadePiece> | undefined
  let done = 0
  const ask = (question: Question) => {
    waiting = thread.request(question).then(pieceIn)
    // Of a search that is given up nobody hears what became of it.
    waiting.catch(() => undefined)
    return waiting
  }
  const failed = (error: unknown) =>
    new SearchFailed({
      failed: total(range) - done,
      first: range.start + done,
      reason: messageOf(error),
    })
  const next: Effect.Effect<Piece, SearchFailed> = Effect.tryPromise({
    try: async () => {
      const piece = await (waiting ?? ask({ id, begin: { range, format } }))
      done = piece.done
      if (done < total(range)) void ask({ id, next: true })
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
      // Its answer under way comes first, and is dropped.
      if (done < total(range)) thread.request({ id, end: true }).catch(() => undefined)
    }),
  }
}

const oldest = ({ sources }: Mirror) => sources.map(({ as_of }) => as_of).toSorted()[0] ?? null

const instantOf = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString())

const unknown = { carriers: null, dockets: null, as_of: null, imported_at: null, is_demo: false }

/** What is known of the file beside its health. */
const shown = (mirror: Mirror | undefined) => {
  if (mirror === undefined) return unknown
  const { carriers, numbers, imported_at, is_demo } = mirror
  return { carriers, dockets: numbers, as_of: oldest(mirror), imported_at, is_demo }
}

/** The thread starts with the first question, and ends with the layer. */
export const registryMirror = ({ path, thread }: RegistryMirrorOptions): Layer.Layer<Registry> =>
  Layer.effect(
    Registry,
    Effect.gen(function* () {
      const clock = yield* Clock.Clock
      const call = yield* Effect.acquireRelease(
        Effect.sync(() =>
          threadCall<Question, Answer>({
            name,
            program: thread?.program ?? program,
            workerData: path,
            resourceLimits,
            response_ms_max: thread?.response_ms_max ?? response_ms_max,
          }),
        ),
        ({ end }) => Effect.promise(end),
      )
      let asked = 0
      let last_answer: number | null = null
      let last_error: { readonly at: number; readonly reason: string } | null = null
      const answered = () => {
        last_answer = clock.currentTimeMillisUnsafe()
      }
      const refused = (reason: string) => {
        last_error = { at: clock.currentTimeMillisUnsafe(), reason }
      }

      const pieces = (range: Range, format: Format) =>
        Stream.unwrap(
          Effect.acquireRelease(
            Effect.sync(() => search(call, ++asked, range, format)),
            ({ end }) => end,
          ).pipe(
            Effect.map(({ pieces }) =>
              pieces.pipe(
                Stream.tap(() => Effect.sync(answered)),
                Stream.tapError(({ reason }) => Effect.sync(() => refused(reason))),
              ),
            ),
          ),
        )
      const about = async (): Promise<{ mirror?: Mirror; detail: string | null }> => {
        try {
          const answer = await call.request({ about: true })
          return "mirror" in answer ? { mirror: answer.mirror, detail: null } : { detail: null }
        } catch (error) {
          return { detail: messageOf(error) }
        }
      }
      const source = Effect.map(
        Effect.promise(about),
        ({ mirror, detail }): Source => ({
          registry: "mirror",
          is_healthy: detail === null,
          detail,
          ...shown(mirror),
          concurrency: null,
          last_answer_at: instantOf(last_answer),
          last_error_at: instantOf(last_error?.at ?? null),
          last_error: last_error?.reason ?? null,
        }),
      )
      return Registry.of({ search: pieces, source })
    }),
  )
