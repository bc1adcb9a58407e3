/** This service's identity in the identity service. Source: document 2 §2 Service info. */
import { Schema } from "effect"
import { PrincipalId } from "#schemas/token.ts"

const named = (what: string) =>
  Schema.Struct({
    id: PrincipalId.annotateKey({ description: `ID of the ${what} in the identity service.` }),
    name: Schema.String.annotateKey({ description: `Name of the ${what}.` }),
  })

export const ServiceInfo = Schema.Struct({
  service_user: named("user").annotateKey({
    description: "The service's user. Name it as the trustee when you create a trust.",
  }),
  worker_project: named("project").annotateKey({
    description: "The project in which the workers run.",
  }),
}).annotate({
  identifier: "ServiceInfo",
  description: "The identity of this service, which tenants need to create trusts.",
})
export type ServiceInfo = typeof ServiceInfo.Type
