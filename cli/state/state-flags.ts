/** What backup-state and restore-state have in common. */
import { Console, Effect, Option, Redacted, Runtime, Schema, Stdio, Stream } from "effect"
import { Flag } from "effect/cli"
import { readBounded } from "#files"

/** Bytes of a passphrase: longer ones are no better. */
const passphrase_bytes_max = 1024

/** Nothing was done; what is there already is as it was: exit code 1. */
export class StateRefused extends Schema.TaggedError<StateRefused>()("StateRefused", {
  message: Schema.String,
}) {
  override readonly [Runtime.errorExitCode] = 1
}

export const passphraseFile = Flag.String("passphrase-file").pipe(
  Flag.withDescription("File whose first line seals the backup; - is standard input"),
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

/** The passphrase, or undefined where none is asked for; never one from the command line. */
export const passphraseOf = Effect.fnUntraced(function* (file: Option.Option<string>) {
  if (Option.isNone(file)) return undefined
  const text =
    file.value === "-" ? yield* standardInput : yield* readBounded(file.value, passphrase_bytes_max)
  const [line = ""] = text.split(/\r?\n/)
  if (line !== "" && Buffer.byteLength(text) <= passphrase_bytes_max) return Redacted.make(line)
  const message = `${file.value} holds no passphrase of 1 to ${passphrase_bytes_max} bytes.`
  return yield* new StateRefused({ message })
})

/** Progress goes to standard error: standard output is the verb's answer. */
export const told = (line: string) => Console.error(line)
