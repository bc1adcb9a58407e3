/** Runs restic commands on one repository, and maps exit codes and output to errors. */
import { Effect } from "effect"
import { EngineFailed, type EngineFailure } from "#actors/share-protection/ports/engine.ts"
import { spanned } from "#events/trace.ts"
import { RepositoryLocked, TrustAccessDenied } from "#schemas/share-protection/rejection.ts"
import { lineSink } from "./lines.ts"
import { isRefusal, type Verdict } from "./output.ts"
import { type Ended, type Restic, type ResticPlace, type ResticRun, runRestic } from "./process.ts"

/** Exit codes, as documented and as observed with versions 0.18 and 0.19. */
export const codes = {
  done: 0,
  failed: 1,
  /** Some files could not be read; the snapshot has the rest. */
  partial: 3,
  no_repository: 10,
  locked: 11,
  wrong_password: 12,
} as const

/** Runs restic; fails unless its exit code is 0 or one of `accepted`. */
export type Call = (
  run: ResticRun,
  ...accepted: ReadonlyArray<number>
) => Effect.Effect<Ended, EngineFailure>

/** Binds restic to a repository. */
export const makeCall =
  (restic: Restic, place: ResticPlace): Call =>
  (run, ...accepted) =>
    Effect.flatMap(spanned(`restic ${run.args[0]}`)(runRestic(restic, place, run)), (ended) => {
      const { code, verdict } = ended
      const is_accepted = code === codes.done || accepted.some((other) => other === code)
      return verdict === undefined && is_accepted
        ? Effect.succeed(ended)
        : Effect.fail(failureOf(restic, place, ended))
    })

/** Runs a command and passes each line of its output to `onLine`. */
export const callLines = (
  call: Call,
  args: ReadonlyArray<string>,
  onLine: (line: string) => void,
  rest: Omit<ResticRun, "args" | "sink"> = {},
  ...accepted: ReadonlyArray<number>
) => call({ ...rest, args, sink: lineSink(onLine) }, ...accepted)

/** A failure before anything was started or written. */
export const failsBefore = (detail: string) => new EngineFailed({ detail, wrote_nothing: true })

export const noRepository = failsBefore("The bucket contains no repository.")

export const wrongPassword = new TrustAccessDenied({
  detail: "The password does not open the repository.",
})

const failureOf = (restic: Restic, place: ResticPlace, ended: Ended): EngineFailure => {
  const { code, verdict, message, is_opening } = ended
  const why = detailOf(place, ended)
  if (verdict === "refused" || isRefusal(message)) {
    return new TrustAccessDenied({ detail: "The bucket rejects the keys." })
  }
  if (verdict !== undefined) {
    const detail = verdictDetail(restic, verdict)
    return new EngineFailed({ detail, wrote_nothing: is_opening })
  }
  if (code === codes.no_repository) return noRepository
  if (code === codes.locked) {
    return new RepositoryLocked({ detail: `The engine's own lock is held: ${why}` })
  }
  if (code === codes.wrong_password) {
    return wrongPassword
  }
  const end = code === null ? "was killed" : `ended with code ${code}`
  return new EngineFailed({ detail: `restic ${end}: ${why}`, wrote_nothing: false })
}

const verdictDetail = ({ outage_ms }: Restic, verdict: Exclude<Verdict, "refused">) =>
  verdict === "outage"
    ? `The bucket did not respond for ${outage_ms / 1000} s.`
    : "The bucket does not exist."

/** Maximum length of restic's message in an error. */
const detail_chars_max = 400

const errors_max = 3

/** restic's message in one line, without secrets. */
const detailOf = ({ secrets }: ResticPlace, { message, errors }: Ended) => {
  const text = [message.replace(/^(Fatal: )+/, ""), ...errors.slice(0, errors_max)].join("; ")
  const redacted = secrets
    .filter((secret) => secret !== "")
    .reduce((text, secret) => text.replaceAll(secret, "<redacted>"), text)
  return redacted.replaceAll(/\s+/g, " ").trim().slice(0, detail_chars_max) || "no message"
}
