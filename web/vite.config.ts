import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, gzipSync } from "node:zlib";

import { svelte } from "@sveltejs/vite-plugin-svelte";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** The server that `npm run dev` asks. It wants requests to come from its own pages. */
const SERVER = process.env.DRAGOMAN ?? "http://127.0.0.1:8721";
const served = { target: SERVER, changeOrigin: true, headers: { origin: SERVER } };

/** These frames are served under policies that let nothing in but what stands in them: they are not bundled. */
function sandboxFrames(): Plugin {
  return {
    name: "sandbox-frames",
    generateBundle() {
      for (const fileName of ["sandbox.html", "preview.html"])
        this.emitFile({ type: "asset", fileName, source: readFileSync(here(fileName), "utf8") });
    },
  };
}

/** Every browser that runs this page reads woff2; the other two formats would treble the package. */
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

/** Diagrams that people do write. What only the others need is two thirds of Mermaid, among it a layout engine of 1.5 MB. */
const DIAGRAMS = "flow|sequence|class|state|er|gantt|pie|gitGraph|journey|quadrant|xychart";
const DRAWN = new RegExp(`^(?:(?:${DIAGRAMS})Diagram|timeline-definition|dagre|sizeCapture|chunk|mermaid)-`);

/** A diagram of another kind cannot be drawn, so its source is shown. */
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

/** Compressed once, here. Browsers take Brotli over HTTPS and from this machine, gzip everywhere. */
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
          // Smaller blocks, each with a code of its own, are fewer bytes in the end.
          this.emitFile({ type: "asset", fileName: `${fileName}.gz`, source: gzipSync(source, { level: 9, memLevel: 6 }) });
        }
      },
    },
  };
}

/** Small, and needed by all that comes later as well: packed as one they are smaller than each alone. */
const SHARED = /\/web\/src\/(?:base|api\/(?:calls|client|sse|stream)|calls\/(?:asking|kept|kinds|visible)|composer\/drafts|i18n\/format|parts\/(?:focus|idle|keys)|state\/(?:catalog|frame|list|rights|toasts)(?:\.svelte)?)\.ts$/;

export default defineConfig({
  base: "./", // the server says where it is, and files find each other
  plugins: [oneFontFormat(), svelte(), sandboxFrames(), packed()],
  worker: { format: "es", plugins: () => [fewerDiagrams()] },
  resolve: process.env.VITEST ? { conditions: ["browser"] } : {},
  build: {
    outDir: here("../src/dragoman/server/page"),
    emptyOutDir: true,
    assetsInlineLimit: 0, // the page's policy allows no data: fonts or scripts
    modulePreload: { polyfill: false }, // the polyfill is an inline script
    target: "es2023",
    rolldownOptions: { input: [here("index.html"), here("shared.html")], output: { codeSplitting: { groups: [{ name: "shared", test: SHARED }] } } },
  },
  server: {
    host: "127.0.0.1", // a cookie holds for all ports of a host
    proxy: { "/api": served, "/sandbox": served, "/preview": served },
  },
  test: {
    environment: "jsdom",
    include: ["tests/**/*.test.ts"],
    isolate: false, // nothing is left behind, and a page for each file takes longer than the tests
    reporters: ["dot"],
    testTimeout: 60_000, // a busy machine is slow, not wrong
  },
});
