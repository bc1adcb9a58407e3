/** Builds `web/dist`, the static files that a gateway serves. */
import { join } from "node:path"
import { defineConfig } from "vite"

const root = import.meta.dirname

export default defineConfig({
  root,
  // Ignore .env files, which may belong to other projects.
  envDir: false,
  plugins: [
    {
      name: "paint-once",
      // Block the first paint until the script has applied the user's theme.
      transformIndexHtml: {
        order: "post",
        handler: (html) => html.replace('<script type="module"', '$& blocking="render"'),
      },
    },
  ],
  build: {
    outDir: process.env.ALMANAC_WEB_OUT ?? join(root, "dist"),
    emptyOutDir: true,
    target: "es2022",
    // The content security policy forbids inline scripts and images.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // Each page is an entry, named like its HTML file.
    rollupOptions: {
      input: {
        dashboard: join(root, "index.html"),
        carriers: join(root, "carriers.html"),
        plants: join(root, "plants.html"),
        console: join(root, "operators.html"),
        reference: join(root, "reference.html"),
      },
    },
  },
})
