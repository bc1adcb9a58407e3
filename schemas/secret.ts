/** Requests to store a secret in the embedded vault. Source: decisions, "secrets and trusts". */
import { Schema } from "effect"
import { Token } from "#schemas/message.ts"

/** Barbican's default limit in bytes. */
export const secret_bytes_max = 20_000

const isShort = (payload: string) =>
  new TextEncoder().encode(payload).length <= secret_bytes_max ||
  `Expected a payload of at most ${secret_bytes_max} bytes`

export const SecretName = Schema.String.check(
  Schema.isMaxLength(255),
  Schema.isPattern(/^\P{Cc}*$/u, { expected: "no control characters" }),
)

/** A secret of a project. Error texts never contain its value. */
export const SecretRequest = Schema.Struct({
  project_id: Token.annotateKey({ description: "Project that owns the secret." }),
  name: Schema.optionalKey(SecretName).annotateKey({
    description: "A name of your choice, at most 255 characters.",
  }),
  payload: Schema.RedactedFromValue(
    Schema.String.check(Schema.isMinLength(1), Schema.makeFilter<string>(isShort)),
  ).annotateKey({
    description: `The secret, at most ${secret_bytes_max} bytes. No response contains it.`,
  }),
})

export type SecretRequest = typeof SecretRequest.Type
