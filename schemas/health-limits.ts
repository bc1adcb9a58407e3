/**
 * From which lag on `almanac doctor` warns, in seconds. Alerts have the same limits
 * (deploy/prometheus/alerts.yml; a test compares the two).
 */
export const lag_s_max = {
  publisher: 60,
  mirror: 60,
  /** A receiver that is offline for a deployment needs no operator. */
  webhook: 3_600,
  /** Events are kept for at least a day by age, and for 30 by default. */
  subscriber: 86_400,
} as const

/** A full stream of published events that covers less than this is too small, in seconds. */
export const kept_s_min = 86_400

/** From this share of its limit on a stream counts as full. */
export const full_share = 0.9
