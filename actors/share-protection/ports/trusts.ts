/**
 * Trusts: the port to the identity service, for the trusts by which tenants authorize this service.
 *
 * Source: document 2 §1, §5; DECISIONS, document 2, identity, secrets, shares.
 */
import { Context, type Effect, type Redacted } from "effect"
import type { ProjectId } from "#schemas/share-protection/id.ts"
import type { BackendUnavailable, TrustAccessDenied } from "#schemas/share-protection/rejection.ts"
import type { ServiceInfo } from "#schemas/share-protection/service-info.ts"

/** A redeemed trust: a token of its project for one job. Never stored or logged. */
export interface Delegation {
  readonly project_id: ProjectId
  readonly token: Redacted.Redacted<string>
}

/** The project and user that submit a trust; no user if the domain's owner submits it. */
export interface TrustRequester {
  readonly project_id: ProjectId
  readonly user_id: string | null
}

/** The details of TrustAccessDenied for all adapters. */
export const denials = {
  gone: "The trust does not exist, was revoked, or has expired.",
  foreign: "The trust is not from this project and user to this service.",
  unfit:
    "The trust must impersonate its trustor, be valid for an hour or more, and have no limit of " +
    "uses.",
  powerless: "The trustor no longer has the roles of the trust.",
} as const

/** Minimum remaining lifetime of a submitted trust in seconds: that of a token issued from it. */
export const trust_remaining_s_min = 3600

type Failure = TrustAccessDenied | BackendUnavailable

export class Trusts extends Context.Service<
  Trusts,
  {
    /** Checks that this service may use the trust for this project for long enough. */
    readonly verify: (trust_id: string, by: TrustRequester) => Effect.Effect<void, Failure>
    /**
     * Issues a new token from the trust. A missing role of the trustor is not permanent: the trust
     * works again when the role is restored.
     */
    readonly redeem: (trust_id: string) => Effect.Effect<Delegation, Failure>
    /** The trustee of tenants and the project of workers; stable across restarts. */
    readonly service: Effect.Effect<ServiceInfo, BackendUnavailable>
  }
>()("actors/share-protection/Trusts") {}
