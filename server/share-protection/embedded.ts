/**
 * The embedded replacement for the cloud on a single machine: identity, trusts, secrets and shares.
 * Source: decisions of document 2, identity, secrets, shares.
 */
import { Effect, Layer } from "effect"
import {
  developmentCredentials,
  type NatsCredentials,
} from "#adapters/identity/development-credentials.ts"
import { developmentTenants } from "#adapters/identity/development-tenants.ts"
import { identity, type OwnTokens } from "#adapters/identity/identity.ts"
import { policyRules } from "#adapters/identity/policy-file.ts"
import { sharesEmbedded } from "#adapters/share-protection/shares/embedded.ts"
import { openTrustStore } from "#adapters/share-protection/trust-store.ts"
import { inspector, trustsEmbedded } from "#adapters/share-protection/trusts-embedded.ts"
import { openVault, vaultEmbedded } from "#adapters/share-protection/vault-embedded.ts"
import { PolicyRules } from "#gateway/access.ts"
import { defaultRules } from "#gateway/share-protection/default-rules.ts"
import { roles as all_roles, type Settings } from "#schemas/settings.ts"

/**
 * Opens the stores in the data folder, which this process has locked, and initializes them on the
 * first startup. `nats` goes into the development credentials.
 */
export const embedded = Effect.fnUntraced(function* (
  settings: Settings,
  own: OwnTokens,
  nats: NatsCredentials,
) {
  const { api, cluster, data, policy, shares } = settings
  const trusts = yield* openTrustStore(data.dir, cluster.secret)
  const vault = yield* openVault(data.dir)
  const rules = yield* policyRules(policy.file, defaultRules(api.shape))
  const credentials = yield* developmentCredentials(data.dir, own.store, nats, cluster.secret)
  yield* developmentTenants(credentials, trusts, shares.root)
  return yield* Layer.build(
    Layer.mergeAll(
      identity(settings, own, credentials),
      trustsEmbedded(trusts),
      vaultEmbedded(vault, inspector(trusts)),
      sharesEmbedded({ root: shares.root, snapshots: () => shares.snapshots }),
      Layer.succeed(PolicyRules, rules),
    ),
  )
})

/** Logs, once the services run, that no FIPS profile is required (DECISIONS, FIPS profile). */
export const noteOfProfile = ({ engine }: Settings) =>
  engine.require_fips_profile
    ? Effect.void
    : Effect.logDebug(
        "engine.require_fips_profile is false, the default with the embedded identity: " +
          "repositories need no FIPS profile. restic does not support one.",
      )

/** Warns that other processes of the deployment do not share the embedded identity. */
export const noteOfOthers = ({ identity, roles }: Settings) =>
  identity.kind !== "embedded" || roles.length === all_roles.length
    ? Effect.void
    : Effect.logWarning(
        "identity.kind is embedded, which is for one machine only: trusts, secrets and shares " +
          "are available to this process only. Issued tokens, auth.tokens and JWT work on all " +
          "processes.",
      )
