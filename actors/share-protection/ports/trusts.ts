/**
 * The port to whoever knows the trusts: what a tenant lets this service do in its name.
 *
 * Source: document 2 §1, §5; DECISIONS, document 2, identity, secrets, shares.
 */
import { Context, type Effect, type Redacted } from "effect"
import type { ProjectId } from "#schemas/share-protection/id.ts"
import type { BackendUnavailable, TrustAccessDenied } from "#schemas/share-protection/rejection.ts"
import type { ServiceInfo } from "#schemas/share-protection/service-info.ts"

/** What a redeemed trust gives: a token of its project, for one job. Never kept, nor logged. */
export interface Delegation {
  readonly project_id: ProjectId
  readonly token: Redacted.Redacted<string>
}

/** Who names a trust: project and user; null where a domain's owner names it for another. */
export interface TrustRequester {
  readonly project_id: ProjectId
  readonly user_id: string | null
}

/** Details of TrustAccessDenied, the same from every adapter. */
export const denials = {
  gone: "The trust does not exist, was revoked, or has expired.",
  foreign: "The trust is not one of this project and user for this service.",
  unfit: "The trust must impersonate its trustor, last for an hour or more, and not be counted.",
  powerless: "The trustor does not hold the roles of the trust any more.",
} as const

/** Least time that a trust must last to be named, in seconds: a token of it lasts as long. */
export const trust_remaining_s_min = 3600

type Failure = TrustAccessDenied | BackendUnavailable

export class Trusts extends Context.Service<
  Trusts,
  {
    /** That the trust may be used for this project, by this service, for long enough. */
    readonly verify: (trust_id: string, by: TrustRequester) => Effect.Effect<void, Failure>
    /**
     * A fresh token of the trust. That the trustor lacks a role may pass: the same trust works
     * again when the role is given back.
     */
    readonly redeem: (trust_id: string) => Effect.Effect<Delegation, Failure>
    /** Whom tenants trust, and where workers live: the same over every restart. */
    readonly service: Effect.Effect<ServiceInfo, BackendUnavailable>
  }
>()("actors/share-protection/Trusts") {}
