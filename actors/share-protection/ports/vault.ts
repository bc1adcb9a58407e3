/**
 * The port to the secrets manager: what is read and written in a tenant's name, and only so.
 *
 * Source: document 2 §1 Secrets; DECISIONS, document 2, identity, secrets, shares.
 */
import { Context, type Effect, type Redacted } from "effect"
import type { Delegation } from "#actors/share-protection/ports/trusts.ts"
import type { BackendUnavailable, TrustAccessDenied } from "#schemas/share-protection/rejection.ts"

/** Why a secret is not to be had: a tenant is told no more, whatever another project has. */
export const secret_denied = "The secret does not exist, or the trust does not reach it."

const href_pattern =
  /\/v1\/secrets\/([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\/?$/i

/**
 * The secret's UUID, in lower case; undefined where the href names none. Nothing else of an href
 * counts: a tenant wrote it, and its host must never be asked, nor be shown a token.
 */
export const secretIdOf = (href: string): string | undefined =>
  href_pattern.exec(href)?.[1]?.toLowerCase()

type Failure = TrustAccessDenied | BackendUnavailable

export interface NewSecret {
  /** For people; at most 255 characters. */
  readonly name: string
  /** 1 to 20,000 bytes of UTF-8. */
  readonly payload: Redacted.Redacted<string>
}

export class Vault extends Context.Service<
  Vault,
  {
    /** The payload as text; one that is no UTF-8 is denied. */
    readonly read: (
      by: Delegation,
      href: string,
    ) => Effect.Effect<Redacted.Redacted<string>, Failure>
    /** Keeps a secret in the delegation's project, durable before it answers its href. */
    readonly store: (by: Delegation, secret: NewSecret) => Effect.Effect<string, Failure>
    /** Href of the newest secret of that name in the delegation's project; undefined: none. */
    readonly find: (by: Delegation, name: string) => Effect.Effect<string | undefined, Failure>
    /** Without effect where there is none. */
    readonly remove: (by: Delegation, href: string) => Effect.Effect<void, Failure>
  }
>()("actors/share-protection/Vault") {}
