/** The scheduler over HTTP. Source: document 2 §2 Scheduling status, §3 Scheduler, §4. */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Needs } from "#gateway/access.ts"
import { for_operators } from "#gateway/share-protection/apis/permission.ts"
import { rejections } from "#schemas/share-protection/rejection.ts"
import { SchedulingStatus } from "#schemas/share-protection/scheduler.ts"

const changed = SchedulingStatus.pipe(HttpApiSchema.status(202))

const about = {
  get: {
    summary: "Get the scheduling status",
    description:
      "Returns whether scheduling is paused, and when the next backup is due. " + for_operators,
  },
  pause: {
    summary: "Pause scheduling",
    description:
      "Stops scheduled backups of all policies from starting. Running jobs continue, and " +
      "backups on demand still start. Has no effect while scheduling is paused. " +
      for_operators,
  },
  resume: {
    summary: "Resume scheduling",
    description:
      "Starts scheduled backups again. Times that passed during the pause are skipped. Has no " +
      `effect while scheduling runs. ${for_operators}`,
  },
}

export const SchedulingGroup = HttpApiGroup.make("scheduling")
  .annotate(
    OpenApi.Description,
    "Scheduling: pauses and resumes the backups of all policies, for operators.",
  )
  .add(
    HttpApiEndpoint.get("get", "/v1/admin/scheduling", {
      success: SchedulingStatus,
      error: rejections(),
    })
      .annotateMerge(OpenApi.annotations(about.get))
      .annotate(Needs, { rule: "share-protection:admin:scheduling:get" }),
    HttpApiEndpoint.post("pause", "/v1/admin/scheduling/pause", {
      success: changed,
      error: rejections(),
    })
      .annotateMerge(OpenApi.annotations(about.pause))
      .annotate(Needs, { rule: "share-protection:admin:scheduling:pause" }),
    HttpApiEndpoint.post("resume", "/v1/admin/scheduling/resume", {
      success: changed,
      error: rejections(),
    })
      .annotateMerge(OpenApi.annotations(about.resume))
      .annotate(Needs, { rule: "share-protection:admin:scheduling:resume" }),
  )
