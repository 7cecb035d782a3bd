/** Writes the page's types from the server's description (standard input); with --check, only says whether they fit. */

import { readFileSync, writeFileSync } from "node:fs";
import { text } from "node:stream/consumers";

import openapiTS, { astToString } from "openapi-typescript";
import ts from "typescript";

const FILE = new URL("src/api/generated.ts", import.meta.url);
const HEAD = `/** Made from the server's description by \`make page-types\`: change that, not this. */

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

`;

/** Titles repeat names, and a type that is told apart by a constant needs no discriminator. */
const needless = (key, value) => (key === "title" && typeof value === "string") || (key === "discriminator" && "mapping" in value);
const described = JSON.parse(await text(process.stdin), (key, value) => (needless(key, value) ? undefined : value));
described.paths = {}; // requests are written by hand in calls.ts; what goes in and comes out of them is not

const types = await openapiTS(described, {
  rootTypes: true,
  rootTypesNoSchemaPrefix: true,
  defaultNonNullable: false, // what a request may leave out has a default
  silent: true,
  transform: (_, { path }) => (path === "#/components/schemas/JsonValue" ? ts.factory.createTypeReferenceNode("Json") : undefined),
});
const made = HEAD + astToString(types);

if (!process.argv.includes("--check")) {
  writeFileSync(FILE, made);
} else if (readFileSync(FILE, "utf8") !== made) {
  console.error("web/src/api/generated.ts is not what the server's description says: run `make page-types`");
  process.exit(1);
}
