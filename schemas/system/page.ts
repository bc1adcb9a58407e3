/**
 * The pages for browsers: whose each is, where it stands, and its file as it was built.
 *
 * Source: decisions of all services, "/".
 */
export const pages = [
  { service: "capital-pressure", path: "/", file: "index.html" },
  { service: "carrier-search", path: "/carriers", file: "carriers.html" },
  { service: "plant-disease", path: "/plants", file: "plants.html" },
  // It shows what belongs to no service beside what each has, wherever these run.
  { service: "operations", path: "/console", file: "operators.html" },
] as const

export type PagePath = (typeof pages)[number]["path"]
