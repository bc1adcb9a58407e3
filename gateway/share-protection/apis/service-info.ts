/** Description of this service. Source: document 2 §2 Service info, §5. */
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { rejections } from "#schemas/share-protection/rejection.ts"
import { ServiceInfo } from "#schemas/share-protection/service-info.ts"

const about = {
  summary: "Get service information",
  description:
    "Returns the service's user and the project of its workers. To create a trust for a target, " +
    "name this user as the trustee. Requires no token.",
}

export const ServiceInfoGroup = HttpApiGroup.make("service-info")
  .annotate(
    OpenApi.Description,
    "The identity of the service, which tenants need to create trusts.",
  )
  .add(
    HttpApiEndpoint.get("get", "/v1/service_info", {
      success: ServiceInfo,
      error: rejections(),
    })
      .annotateMerge(OpenApi.annotations(about))
      .annotate(Needs, "public"),
  )
