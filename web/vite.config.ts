import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, gzipSync } from "node:zlib";

import { svelte } from "@sveltejs/vite-plugin-svelte";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** The server behind `npm run dev`. It accepts only requests from its own origin. */
const SERVER = process.env.DRAGOMAN ?? "http://127.0.0.1:8721";
const served = { target: SERVER, changeOrigin: true, headers: { origin: SERVER } };

/** These frames are served under policies that allow only their inline content, so they are not bundled. */
function sandboxFrames(): Plugin {
  return {
    name: "sandbox-frames",
    generateBundle() {
      for (const fileName of ["sandbox.html", "preview.html"])
        this.emitFile({ type: "asset", fileName, source: readFileSync(here(fileName), "utf8") });
    },
  };
}

/** Every browser that runs the web UI reads woff2. The other two formats would triple the package. */
function oneFontFormat(): Plugin {
  return {
    name: "one-font-format",
    enforce: "pre",
    transform(code, id) {
      if (!/katex.*\.css/.test(id)) return null;
      return code.replace(/,url\([^)]*\.(?:woff|ttf)\) format\("(?:woff|truetype)"\)/g, "");
    },
  };
}

/** Common diagram types. The code that only the others need is two thirds of Mermaid, with a layout engine of 1.5 MB. */
const DIAGRAMS = "flow|sequence|class|state|er|gantt|pie|gitGraph|journey|quadrant|xychart";
const DRAWN = new RegExp(`^(?:(?:${DIAGRAMS})Diagram|timeline-definition|dagre|sizeCapture|chunk|mermaid)-`);

/** Diagrams of other types are not drawn: their source is shown. */
function fewerDiagrams(): Plugin {
  const left = "\0left-out";
  return {
    name: "fewer-diagrams",
    enforce: "pre",
    resolveId(source, importer) {
      if (!importer?.includes("/mermaid/dist/")) return null;
      const [, name] = /^\.\/(?:chunks\/mermaid\.core\/)?([\w-]+\.mjs)$/.exec(source) ?? [];
      return source === "katex" || (name && name.includes("-") && !DRAWN.test(name)) ? left : null;
    },
    load: (id) => (id === left ? 'throw new Error("this kind of diagram is not drawn here");\nexport default null;' : null),
  };
}

/** Compress once, at build time. Browsers accept Brotli over HTTPS and from this machine, gzip everywhere. */
function packed(): Plugin {
  return {
    name: "packed",
    apply: "build",
    generateBundle: {
      order: "post",
      handler(_, bundle) {
        for (const [fileName, made] of Object.entries(bundle)) {
          if (!/\.(?:js|css|svg)$/.test(fileName)) continue;
          const source = made.type === "chunk" ? made.code : made.source;
          this.emitFile({ type: "asset", fileName: `${fileName}.br`, source: brotliCompressSync(source) });
          // Smaller blocks, each with a separate code table, produce fewer bytes in total.
          this.emitFile({ type: "asset", fileName: `${fileName}.gz`, source: gzipSync(source, { level: 9, memLevel: 6 }) });
        }
      },
    },
  };
}

/** Small modules that all later chunks need, too: bundled together they are smaller than separately. */
const SHARED = /\/web\/src\/(?:base|api\/(?:calls|client|sse|stream)|calls\/(?:asking|kept|kinds|visible)|composer\/drafts|i18n\/format|parts\/(?:focus|idle|keys)|state\/(?:catalog|frame|list|rights|toasts)(?:\.svelte)?)\.ts$/;

export default defineConfig({
  base: "./", // the server sets its base path, and files refer to each other by relative paths
  plugins: [oneFontFormat(), svelte(), sandboxFrames(), packed()],
  worker: { format: "es", plugins: () => [fewerDiagrams()] },
  resolve: process.env.VITEST ? { conditions: ["browser"] } : {},
  build: {
    outDir: here("../src/dragoman/server/page"),
    emptyOutDir: true,
    assetsInlineLimit: 0, // the web UI's policy does not allow data: fonts or scripts
    modulePreload: { polyfill: false }, // the polyfill is an inline script
    target: "es2023",
    rolldownOptions: { input: [here("index.html"), here("shared.html")], output: { codeSplitting: { groups: [{ name: "shared", test: SHARED }] } } },
  },
  server: {
    host: "127.0.0.1", // a cookie is valid for all ports of a host
    proxy: { "/api": served, "/sandbox": served, "/preview": served },
  },
  test: {
    environment: "jsdom",
    include: ["tests/**/*.test.ts"],
    isolate: false, // tests leave nothing behind, and a new page for each file takes longer than the tests
    reporters: ["dot"],
    testTimeout: 60_000, // a busy machine is slow, not wrong
  },
});
