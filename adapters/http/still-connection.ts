/** How long a connection may be still. */

/** Slow heads are cut off: nobody needs ten seconds for 16 KiB. */
export const headers_timeout_ms = 10_000
/** Longer than the usual idle times of proxies, which must be the first to hang up. */
export const keep_alive_ms = 75_000
