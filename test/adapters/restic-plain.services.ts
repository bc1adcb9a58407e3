import { resticPromises } from "./restic-promises.ts"

resticPromises("plain buckets", { lock: false })
