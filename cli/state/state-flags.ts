/** Flags shared by backup-state and restore-state. */
import { Console, Effect, Option, Redacted, Runtime, Schema, Stdio, Stream } from "effect"
import { Flag } from "effect/cli"
import { readBounded } from "#files"

/** Maximum size of a passphrase, in bytes. */
const passphrase_bytes_max = 1024

/** Nothing was changed: exit code 1. */
export class StateRefused extends Schema.TaggedError<StateRefused>()("StateRefused", {
  message: Schema.String,
}) {
  override readonly [Runtime.errorExitCode] = 1
}

export const passphraseFile = Flag.String("passphrase-file").pipe(
  Flag.withDescription(
    "File with the passphrase of the backup in its first line; - for standard input",
  ),
  Flag.optional,
)

const standardInput = Effect.gen(function* () {
  const { stdin } = yield* Stdio.Stdio
  let bytes = 0
  const parts = yield* stdin.pipe(
    Stream.takeUntil((part) => {
      bytes += part.length
      return bytes > passphrase_bytes_max
    }),
    Stream.runCollect,
  )
  return Buffer.concat(parts).toString()
})

/** Reads the passphrase; undefined without the flag. It never comes from the command line. */
export const passphraseOf = Effect.fnUntraced(function* (file: Option.Option<string>) {
  if (Option.isNone(file)) return undefined
  const text =
    file.value === "-" ? yield* standardInput : yield* readBounded(file.value, passphrase_bytes_max)
  const [line = ""] = text.split(/\r?\n/)
  if (line !== "" && Buffer.byteLength(text) <= passphrase_bytes_max) return Redacted.make(line)
  const limits = `1 to ${passphrase_bytes_max} bytes`
  const message = `The first line of ${file.value} must be a passphrase of ${limits}.`
  return yield* new StateRefused({ message })
})

/** Prints progress to standard error, because standard output carries the result. */
export const printProgress = (line: string) => Console.error(line)
