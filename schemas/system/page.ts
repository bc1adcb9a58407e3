/**
 * The web pages: service, path and built file.
 *
 * Source: decisions of all services, "/".
 */
export const pages = [
  { service: "capital-pressure", path: "/", file: "index.html" },
  { service: "carrier-search", path: "/carriers", file: "carriers.html" },
  { service: "plant-disease", path: "/plants", file: "plants.html" },
  // The operations console covers the platform and all services, wherever they run.
  { service: "operations", path: "/console", file: "operators.html" },
] as const

export type PagePath = (typeof pages)[number]["path"]
