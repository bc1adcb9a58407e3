/** This service's identity in the identity service. Source: document 2 §2 Service info. */
import { Schema } from "effect"
import { PrincipalId } from "#schemas/token.ts"

const named = Schema.Struct({ id: PrincipalId, name: Schema.String })

export const ServiceInfo = Schema.Struct({
  /** The trustee of tenants' trusts. */
  service_user: named,
  /** The project of the workers. */
  worker_project: named,
})
export type ServiceInfo = typeof ServiceInfo.Type
