/**
 * The lags above which `almanac doctor` warns, in seconds. Alerts use the same limits
 * (deploy/prometheus/alerts.yml; a test compares the two).
 */
export const lag_s_max = {
  publisher: 60,
  mirror: 60,
  /** Receivers may be offline during a deployment without an alert. */
  webhook: 3_600,
  /** Events are retained for at least a day, and for 30 days by default. */
  subscriber: 86_400,
} as const

/** A full stream of published events that covers less than this is too small, in seconds. */
export const retained_s_min = 86_400

/** A stream counts as full from this share of its limit. */
export const full_share = 0.9
