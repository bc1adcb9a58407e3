/**
 * Listens to restic's standard error: why it ends, and whether what it tries again is in vain.
 *
 * restic repeats every request for up to 15 minutes, whatever the answer was: wrong keys too.
 */
import { readError, readExitError } from "./message.ts"

/** Why restic is stopped by us: the bucket refuses the keys, is not there, or does not answer. */
export type Verdict = "refused" | "no bucket" | "outage"

/** What was heard. */
export interface Heard {
  /** Its last word, or the last lines that it wrote. */
  readonly message: string
  /** The first errors that it met on its way. */
  readonly errors: ReadonlyArray<string>
  readonly errors_count: number
  /** What the first errors were about; an empty text where restic does not say. */
  readonly items: ReadonlyArray<string>
  readonly verdict: Verdict | undefined
  /** Whether it waited for the repository's config, before which it does nothing. */
  readonly is_opening: boolean
}

/** Errors that are kept; a run that meets more of them has failed in any case. */
const errors_max = 100
/** Items that are kept, of paths of 4,096 bytes at most. */
const items_max = 10_000
const message_chars_max = 2_000
/** Lines of its last words, where these are no JSON. */
const last_lines_max = 3

/** Refusals in a row that are the bucket's answer: some 4 s, in which an outage of its own ends. */
const refusals_max = 3

/** How S3 servers word it, and minio's library where a HEAD came back without words. */
const refusal = new RegExp(
  [
    "access key id you provided does not exist|signature we calculated does not match",
    "access ?denied|provided token|request has expired|account is disabled",
    "InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|InvalidToken|AllAccessDisabled",
  ].join("|"),
  "i",
)
const no_bucket = /specified bucket does not exist|NoSuchBucket/i

/** Whether these words are a bucket's refusal of the keys. */
export const isRefusal = (words: string) => refusal.test(words)

/**
 * An ear for one run. `stop` is called once, when a verdict is found; `outage_ms` is how long
 * nothing but repeated requests may be heard.
 */
export const newEar = (outage_ms: number, stop: () => void) => {
  const heard = {
    message: "",
    errors: [] as string[],
    errors_count: 0,
    items: [] as string[],
    is_opening: false,
    verdict: undefined as Verdict | undefined, // Widened: it is set later.
  }
  const last: Array<string> = []
  let fatal: string | undefined
  let answers: ReadonlyArray<Verdict> = []
  let timer: NodeJS.Timeout | undefined
  const judge = (verdict: Verdict) => {
    if (heard.verdict !== undefined) return
    heard.verdict = verdict
    stop()
  }
  const calm = () => {
    clearTimeout(timer)
    timer = undefined
    answers = []
  }
  const retried = (line: string) => {
    heard.is_opening = line.includes("(<config/>)")
    timer ??= setTimeout(() => judge("outage"), outage_ms)
    const answer = refusal.test(line) ? "refused" : no_bucket.test(line) ? "no bucket" : "outage"
    answers = [...answers.slice(1 - refusals_max), answer]
    if (answer === "outage" || answers.length < refusals_max) return
    if (answers.every((one) => one === answer)) judge(answer)
  }
  const onLine = (line: string) => {
    const words = line.slice(0, message_chars_max)
    const problem = readError(line)
    if (problem !== undefined) {
      const { error, item = "" } = problem
      if (heard.items.length < items_max) heard.items.push(item)
      if (heard.errors_count++ < errors_max) {
        heard.errors.push(error.message.slice(0, message_chars_max))
      }
    } else if (/ returned error, retrying after /.test(words)) retried(words)
    else if (/ operation successful after \d+ retries/.test(words)) calm()
    else {
      fatal = readExitError(line)?.message ?? fatal
      last.push(words)
      last.splice(0, last.length - last_lines_max)
    }
  }
  const end = (): Heard => {
    clearTimeout(timer)
    return { ...heard, message: (fatal ?? last.join("\n")).slice(0, message_chars_max) }
  }
  return { onLine, end }
}
