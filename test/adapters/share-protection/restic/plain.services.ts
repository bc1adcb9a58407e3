import { resticPromises } from "../../../world/share-protection/restic/promises.ts"

resticPromises("plain buckets", { lock: false })
