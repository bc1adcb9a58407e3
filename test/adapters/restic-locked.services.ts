import { resticPromises } from "./restic-promises.ts"

resticPromises("buckets that lock what is put into them", { lock: true, retention_days: 1 })
