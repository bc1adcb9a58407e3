/** Deterministic ids: the same for the same cause, so that repeated work is idempotent. */
import { parse, stringify, v5, v7 } from "uuid"

/** The UUID namespace of causes. */
const namespace = "8a6e0804-2bd0-4672-b79d-d97027f9071a"

/** Bytes of a UUIDv7's time; the rest is random except for the version and variant bits. */
const time_bytes = 6

/** A UUIDv7 of the time `at` (RFC 3339) with random bits derived from `cause`. */
export const derivedId = (cause: string, at: string) => {
  const bytes = v7({ msecs: Date.parse(at) }, new Uint8Array(16))
  const made = parse(v5(cause, namespace))
  // The version is the high half of the first byte after the time; the variant is in the 9th.
  for (let i = time_bytes; i < bytes.length; i++) bytes[i] = made[i] ?? 0
  bytes[time_bytes] = ((made[time_bytes] ?? 0) & 0x0f) | 0x70
  return stringify(bytes)
}

/** The time of a UUIDv7, in milliseconds since the epoch. */
export const timeOfId = (id: string) =>
  Number.parseInt(id.replaceAll("-", "").slice(0, 2 * time_bytes), 16)
