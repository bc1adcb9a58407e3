/** The scheduler over HTTP. Source: document 2 §2 Scheduling status, §3 Scheduler, §4. */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { rejections } from "#schemas/share-protection/rejection.ts"
import { SchedulingStatus } from "#schemas/share-protection/scheduler.ts"

const changed = SchedulingStatus.pipe(HttpApiSchema.status(202))

export const SchedulingGroup = HttpApiGroup.make("scheduling")
  .annotate(OpenApi.Description, "Scheduling: whether policies ask for backups.")
  .add(
    HttpApiEndpoint.get("get", "/v1/admin/scheduling", {
      success: SchedulingStatus,
      error: rejections(),
    })
      .annotate(OpenApi.Summary, "Read whether scheduling is paused")
      .annotate(Needs, { rule: "share-protection:admin:scheduling:get" }),
    HttpApiEndpoint.post("pause", "/v1/admin/scheduling/pause", {
      success: changed,
      error: rejections(),
    })
      .annotate(OpenApi.Summary, "Pause scheduling")
      .annotate(Needs, { rule: "share-protection:admin:scheduling:pause" }),
    HttpApiEndpoint.post("resume", "/v1/admin/scheduling/resume", {
      success: changed,
      error: rejections(),
    })
      .annotate(OpenApi.Summary, "Resume scheduling")
      .annotate(Needs, { rule: "share-protection:admin:scheduling:resume" }),
  )
