/** Commands for the nouns of the API, each loaded when it is used. */
import type { Noun } from "#cli/client/operation.ts"

const noun = (load: () => Promise<Noun>) => async () => {
  const [{ commandOf }, found] = await Promise.all([import("#cli/requests.ts"), load()])
  return commandOf(found)
}

export const share_protection = {
  targets: noun(async () => (await import("#cli/client/share-protection/target.ts")).targets),
  templates: noun(
    async () => (await import("#cli/client/share-protection/target-template.ts")).templates,
  ),
  policies: noun(async () => (await import("#cli/client/share-protection/policy.ts")).policies),
  backups: noun(async () => (await import("#cli/client/share-protection/backup.ts")).backups),
  restores: noun(async () => (await import("#cli/client/share-protection/restore.ts")).restores),
  jobs: async () => (await import("#cli/jobs.ts")).jobs,
  usage: noun(async () => (await import("#cli/client/share-protection/fleet.ts")).usage),
  service: noun(async () => (await import("#cli/client/share-protection/fleet.ts")).service),
}

export const operators = {
  workers: noun(async () => (await import("#cli/client/share-protection/fleet.ts")).workers),
  rollouts: noun(async () => (await import("#cli/client/share-protection/fleet.ts")).rollouts),
  domains: noun(async () => (await import("#cli/client/share-protection/fleet.ts")).domains),
  coverage: noun(async () => (await import("#cli/client/share-protection/fleet.ts")).coverage),
  scheduling: noun(async () => (await import("#cli/client/share-protection/fleet.ts")).scheduling),
  reconciliation: noun(
    async () => (await import("#cli/client/share-protection/fleet.ts")).reconciliation,
  ),
  "read-models": noun(async () => (await import("#cli/client/system/audit.ts")).readModels),
}

export const subscribers = {
  webhooks: noun(async () => (await import("#cli/client/system/webhook.ts")).webhooks),
}

export const dashboard = {
  readings: noun(async () => (await import("#cli/client/capital-pressure/reading.ts")).readings),
}
