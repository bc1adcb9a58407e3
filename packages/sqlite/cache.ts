import type Sqlite from "better-sqlite3"

/**
 * Limits a connection's page cache to 2 MB, SQLite's own default. The driver raises it to 16 MB,
 * and a server has a dozen connections; the kernel caches the same pages once.
 */
export const limitCache = (sqlite: Sqlite.Database): void => {
  sqlite.pragma("cache_size = -2000")
}
