import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Trusts } from "#actors/share-protection/ports/trusts.ts"
import type { ShareProtectionApi } from "#gateway/share-protection/apis/api.ts"

/** How a tenant finds the trustee of a trust. Source: document 2 §2 Service info. */
export const serviceInfoHandlers = (api: ShareProtectionApi) =>
  HttpApiBuilder.group(api, "service-info", (handlers) =>
    handlers.handle("get", () => Effect.flatMap(Trusts, ({ service }) => service)),
  )
