/**
 * Parses restic's standard error: why it fails, and whether retries are pointless.
 *
 * restic retries every request for up to 15 minutes, even after a wrong key.
 */
import { readError, readExitError } from "./message.ts"

/** Why we stop restic: the bucket refuses the keys, does not exist, or does not respond. */
export type Verdict = "refused" | "no bucket" | "outage"

/** The parsed standard error. */
export interface StderrSummary {
  /** The fatal message, or else the last lines. */
  readonly message: string
  /** The first errors. */
  readonly errors: ReadonlyArray<string>
  readonly errors_count: number
  /** The paths of the first errors; empty if restic names none. */
  readonly items: ReadonlyArray<string>
  readonly verdict: Verdict | undefined
  /** Whether restic was still waiting for the repository's config, before which it does nothing. */
  readonly is_opening: boolean
}

/** Maximum number of recorded errors: a run with more has failed anyway. */
const errors_max = 100
/** Maximum number of recorded paths, of up to 4,096 bytes each. */
const items_max = 10_000
const message_chars_max = 2_000
/** Number of last lines in the message, if there is no JSON message. */
const last_lines_max = 3

/** Consecutive refusals that count as final: about 4 s, enough for a short outage to end. */
const refusals_max = 3

/** Messages of S3 servers, and of minio's library for a HEAD response without a body. */
const refusal = new RegExp(
  [
    "access key id you provided does not exist|signature we calculated does not match",
    "access ?denied|provided token|request has expired|account is disabled",
    "InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|InvalidToken|AllAccessDisabled",
  ].join("|"),
  "i",
)
const no_bucket = /specified bucket does not exist|NoSuchBucket/i

/** Whether this message says that the bucket refuses the keys. */
export const isRefusal = (text: string) => refusal.test(text)

/**
 * Creates a parser for one run. Calls `stop` once when there is a verdict. `outage_ms` is the
 * maximum time with nothing but retries.
 */
export const newStderrParser = (outage_ms: number, stop: () => void) => {
  const summary = {
    message: "",
    errors: [] as string[],
    errors_count: 0,
    items: [] as string[],
    is_opening: false,
    verdict: undefined as Verdict | undefined, // Widened: it is set later.
  }
  const last: Array<string> = []
  let fatal: string | undefined
  let outcomes: ReadonlyArray<Verdict> = []
  let timer: NodeJS.Timeout | undefined
  const judge = (verdict: Verdict) => {
    if (summary.verdict !== undefined) return
    summary.verdict = verdict
    stop()
  }
  const onSuccess = () => {
    clearTimeout(timer)
    timer = undefined
    outcomes = []
  }
  const onRetry = (line: string) => {
    summary.is_opening = line.includes("(<config/>)")
    timer ??= setTimeout(() => judge("outage"), outage_ms)
    const outcome = refusal.test(line) ? "refused" : no_bucket.test(line) ? "no bucket" : "outage"
    outcomes = [...outcomes.slice(1 - refusals_max), outcome]
    if (outcome === "outage" || outcomes.length < refusals_max) return
    if (outcomes.every((one) => one === outcome)) judge(outcome)
  }
  const onLine = (line: string) => {
    const text = line.slice(0, message_chars_max)
    const problem = readError(line)
    if (problem !== undefined) {
      const { error, item = "" } = problem
      if (summary.items.length < items_max) summary.items.push(item)
      if (summary.errors_count++ < errors_max) {
        summary.errors.push(error.message.slice(0, message_chars_max))
      }
    } else if (/ returned error, retrying after /.test(text)) onRetry(text)
    else if (/ operation successful after \d+ retries/.test(text)) onSuccess()
    else {
      fatal = readExitError(line)?.message ?? fatal
      last.push(text)
      last.splice(0, last.length - last_lines_max)
    }
  }
  const end = (): StderrSummary => {
    clearTimeout(timer)
    return { ...summary, message: (fatal ?? last.join("\n")).slice(0, message_chars_max) }
  }
  return { onLine, end }
}
