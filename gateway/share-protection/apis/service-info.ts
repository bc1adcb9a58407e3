/** Description of this service. Source: document 2 §2 Service info, §5. */
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { rejections } from "#schemas/share-protection/rejection.ts"
import { ServiceInfo } from "#schemas/share-protection/service-info.ts"

export const ServiceInfoGroup = HttpApiGroup.make("service-info")
  .annotate(OpenApi.Description, "What a tenant must know to use the service.")
  .add(
    HttpApiEndpoint.get("get", "/v1/service_info", {
      success: ServiceInfo,
      error: rejections(),
    })
      .annotate(OpenApi.Summary, "Read what the service is")
      .annotate(Needs, "public"),
  )
