import { resticPromises } from "../../../world/share-protection/restic/promises.ts"

resticPromises("buckets that lock what is put into them", { lock: true, retention_days: 1 })
