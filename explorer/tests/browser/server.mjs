// Serves the built page to the tests: `node server.mjs PORT`. PERHOP_EXPLORER names its folder.
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { dirname, extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const root = process.env.PERHOP_EXPLORER ?? join(here, "../../../python/perhop/explorer");
const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
  ".json": "application/json",
  ".wasm": "application/wasm",
};

createServer(async (request, response) => {
  const path = normalize(new URL(request.url ?? "/", "http://localhost").pathname);
  try {
    const body = await readFile(join(root, path === "/" ? "index.html" : path));
    response.writeHead(200, { "content-type": TYPES[extname(path)] ?? "text/plain; charset=utf-8" }).end(body);
  } catch {
    response.writeHead(404).end();
  }
}).listen(Number(process.argv[2]), "127.0.0.1");
