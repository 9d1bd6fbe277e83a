// What a link carries behind its #: programs, test, settings and seed, as compressed JSON.

export async function toFragment(state) {
  const bytes = await through(new TextEncoder().encode(JSON.stringify(state)), new CompressionStream("deflate-raw"));
  const text = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  return `#chaos=${text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

// Returns what the fragment carries, null for another one; throws for one that is damaged.
export async function fromFragment(fragment) {
  const match = /^#chaos=([\w-]+)$/.exec(fragment);
  if (!match) return null;
  const bytes = Uint8Array.from(atob(match[1].replaceAll("-", "+").replaceAll("_", "/")), (one) => one.charCodeAt(0));
  return JSON.parse(new TextDecoder().decode(await through(bytes, new DecompressionStream("deflate-raw"))));
}

async function through(bytes, stream) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}
