/** Pages of a collection. Source: document 2 §8 Limits; DECISIONS, document 2, pagination. */
import { Effect } from "effect"
import { Deployment } from "#gateway/share-protection/deployment.ts"
import { ValidationError } from "#schemas/share-protection/rejection.ts"

export interface PageQuery {
  readonly limit?: number
  readonly marker?: string
}

/** The requested page. Rejects a limit above `api.max_limit`. */
export const pageOf = Effect.fnUntraced(function* ({ limit, marker }: PageQuery) {
  const { default_limit, max_limit } = (yield* Deployment).settings().api
  const page_limit = limit ?? Math.min(default_limit, max_limit)
  if (page_limit > max_limit) {
    return yield* new ValidationError({ detail: `query.limit: Expected 1 to ${max_limit}` })
  }
  return { limit: page_limit, marker }
})
