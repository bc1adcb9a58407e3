/** Who this service is to the identity service. Source: document 2 §2 Service info. */
import { Schema } from "effect"
import { PrincipalId } from "#schemas/token.ts"

const named = Schema.Struct({ id: PrincipalId, name: Schema.String })

export const ServiceInfo = Schema.Struct({
  /** The trustee that a tenant's trust names. */
  service_user: named,
  /** The project that the workers are in. */
  worker_project: named,
})
export type ServiceInfo = typeof ServiceInfo.Type
