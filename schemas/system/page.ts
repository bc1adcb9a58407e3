/**
 * The web pages: service, path, built file and title.
 *
 * Source: decisions of all services, "/".
 */
export const pages = [
  { service: "capital-pressure", path: "/", file: "index.html", title: "Dashboard" },
  { service: "carrier-search", path: "/carriers", file: "carriers.html", title: "Carriers" },
  { service: "plant-disease", path: "/plants", file: "plants.html", title: "Plants" },
  // The operations console covers the platform and all services, wherever they run.
  { service: "operations", path: "/console", file: "operators.html", title: "Console" },
  // Every gateway serves the reference of its services.
  { service: "system", path: "/docs", file: "reference.html", title: "API" },
] as const

export type Page = (typeof pages)[number]
export type PagePath = Page["path"]

/** The pages of these services. The page of `system` exists on every gateway. */
export const pagesOf = (services: ReadonlyArray<string>): ReadonlyArray<Page> =>
  pages.filter(({ service }) => service === "system" || services.includes(service))
