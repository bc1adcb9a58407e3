import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import type { ShareProtectionApi } from "#gateway/share-protection/apis/api.ts"
import { Deployment } from "#gateway/share-protection/deployment.ts"
import { BackendUnavailable } from "#schemas/share-protection/rejection.ts"

/** Source: document 2 §4; DECISIONS, document 2, other admin answers. */
const health = Effect.gen(function* () {
  const why = yield* (yield* Deployment).conductor
  if (why === undefined) return { status: "healthy" as const }
  return yield* new BackendUnavailable({ detail: `The conductor ${why}.` })
})

export const healthHandlers = (api: ShareProtectionApi) =>
  HttpApiBuilder.group(api, "health", (handlers) => handlers.handle("get", () => health))
