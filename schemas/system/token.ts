/**
 * Issued tokens, identified by their SHA-256 in lower-case hex: their grants and expiry.
 *
 * Source: decisions, "secrets and trusts"; decision 0153.
 */
import { Schema } from "effect"
import { Instant } from "#schemas/instant.ts"
import { message } from "#schemas/message.ts"
import { PrincipalId, TokenName, TokenRequest } from "#schemas/token.ts"

/** Issues the token whose hash is the stream's id. */
export const IssueToken = message("IssueToken", {
  name: TokenName,
  scopes: TokenRequest.fields.scopes,
  roles: TokenRequest.fields.roles,
  project_id: Schema.NullOr(PrincipalId),
  domain_id: Schema.NullOr(PrincipalId),
  user_id: Schema.NullOr(PrincipalId),
  /** Null: never. */
  expires_at: Schema.NullOr(Instant),
})
/** The token is invalid from now on. */
export const RevokeToken = message("RevokeToken", {})

export const TokenCommand = Schema.Union([IssueToken, RevokeToken])
export type TokenCommand = typeof TokenCommand.Type
