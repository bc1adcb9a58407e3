/** Makes `web/dist` out of the pages' sources: files that a gateway serves as they are. */
import { join } from "node:path"
import { defineConfig } from "vite"

const root = import.meta.dirname

export default defineConfig({
  root,
  // What somebody sets for another project's pages has no say here.
  envDir: false,
  plugins: [
    {
      name: "paint-once",
      // The first picture waits for the script: it knows the colours that the reader chose.
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
    // A strict content policy refuses scripts and pictures that stand in the page itself.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // Each page is an entry, by the name of its HTML file.
    rollupOptions: {
      input: {
        dashboard: join(root, "index.html"),
        carriers: join(root, "carriers.html"),
        plants: join(root, "plants.html"),
        console: join(root, "operators.html"),
      },
    },
  },
})
