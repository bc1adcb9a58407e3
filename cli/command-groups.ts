/** The command groups of the API, each loaded on first use. */
import type { CommandGroup } from "#cli/client/operation.ts"

const lazyGroup = (load: () => Promise<CommandGroup>) => async () => {
  const [{ groupCommand }, group] = await Promise.all([import("#cli/requests.ts"), load()])
  return groupCommand(group)
}

export const share_protection = {
  targets: lazyGroup(async () => (await import("#cli/client/share-protection/target.ts")).targets),
  templates: lazyGroup(
    async () => (await import("#cli/client/share-protection/target-template.ts")).templates,
  ),
  policies: lazyGroup(
    async () => (await import("#cli/client/share-protection/policy.ts")).policies,
  ),
  backups: lazyGroup(async () => (await import("#cli/client/share-protection/backup.ts")).backups),
  restores: lazyGroup(
    async () => (await import("#cli/client/share-protection/restore.ts")).restores,
  ),
  jobs: async () => (await import("#cli/jobs.ts")).jobs,
  usage: lazyGroup(async () => (await import("#cli/client/share-protection/fleet.ts")).usage),
  service: lazyGroup(async () => (await import("#cli/client/share-protection/fleet.ts")).service),
}

export const operators = {
  workers: lazyGroup(async () => (await import("#cli/client/share-protection/fleet.ts")).workers),
  rollouts: lazyGroup(async () => (await import("#cli/client/share-protection/fleet.ts")).rollouts),
  domains: lazyGroup(async () => (await import("#cli/client/share-protection/fleet.ts")).domains),
  coverage: lazyGroup(async () => (await import("#cli/client/share-protection/fleet.ts")).coverage),
  scheduling: lazyGroup(
    async () => (await import("#cli/client/share-protection/fleet.ts")).scheduling,
  ),
  reconciliation: lazyGroup(
    async () => (await import("#cli/client/share-protection/fleet.ts")).reconciliation,
  ),
  "read-models": lazyGroup(async () => (await import("#cli/client/system/audit.ts")).readModels),
}

export const subscribers = {
  webhooks: lazyGroup(async () => (await import("#cli/client/system/webhook.ts")).webhooks),
}

export const dashboard = {
  readings: lazyGroup(
    async () => (await import("#cli/client/capital-pressure/reading.ts")).readings,
  ),
}
