/**
 * Vault: the port to the secrets manager. All access uses a tenant's delegation.
 *
 * Source: document 2 §1 Secrets; DECISIONS, document 2, identity, secrets, shares.
 */
import { Context, type Effect, type Redacted } from "effect"
import type { Delegation } from "#actors/share-protection/ports/trusts.ts"
import type { BackendUnavailable, TrustAccessDenied } from "#schemas/share-protection/rejection.ts"

/** The only detail of a denied read, so that it reveals nothing about other projects. */
export const secret_denied = "The secret does not exist, or the trust does not give access to it."

const href_pattern =
  /\/v1\/secrets\/([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\/?$/i

/**
 * The secret's UUID in lower case; undefined if the href has none. The rest of the href is ignored:
 * a tenant wrote it, so its host must never receive a request or a token.
 */
export const secretIdOf = (href: string): string | undefined =>
  href_pattern.exec(href)?.[1]?.toLowerCase()

type Failure = TrustAccessDenied | BackendUnavailable

export interface NewSecret {
  /** A display name of at most 255 characters. */
  readonly name: string
  /** 1 to 20,000 bytes of UTF-8. */
  readonly payload: Redacted.Redacted<string>
}

export class Vault extends Context.Service<
  Vault,
  {
    /** The payload as text; denied if it is not UTF-8. */
    readonly read: (
      by: Delegation,
      href: string,
    ) => Effect.Effect<Redacted.Redacted<string>, Failure>
    /** Stores a secret durably in the delegation's project and returns its href. */
    readonly store: (by: Delegation, secret: NewSecret) => Effect.Effect<string, Failure>
    /** Href of the newest secret of that name in the delegation's project, if any. */
    readonly find: (by: Delegation, name: string) => Effect.Effect<string | undefined, Failure>
    /** Has no effect if there is none. */
    readonly remove: (by: Delegation, href: string) => Effect.Effect<void, Failure>
  }
>()("actors/share-protection/Vault") {}
