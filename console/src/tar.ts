// The files of a tar, as the bundles of functions are.
const block = 512;

export function untar(raw: Uint8Array): Map<string, string> {
  const files = new Map<string, string>();
  const decoder = new TextDecoder();
  const text = (at: number, size: number) => decoder.decode(raw.subarray(at, at + size)).replace(/\0[\s\S]*$/, "");
  let named = ""; // the name that an extended header has for the next file
  for (let at = 0; at + block <= raw.length && raw[at] !== 0; ) {
    const size = parseInt(text(at + 124, 12), 8) || 0;
    const kind = String.fromCharCode(raw[at + 156] ?? 0);
    const content = decoder.decode(raw.subarray(at + block, at + block + size));
    if (kind === "x") named = /(?:^|\n)\d+ path=([^\n]*)/.exec(content)?.[1] ?? "";
    else {
      const prefix = text(at + 345, 155);
      if (kind === "0" || kind === "\0") files.set(named || (prefix ? prefix + "/" : "") + text(at, 100), content);
      named = "";
    }
    at += block + Math.ceil(size / block) * block;
  }
  return files;
}

// base64 returns the UTF-8 of a text in base64.
export function base64(text: string): string {
  let binary = "";
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte);
  return btoa(binary);
}
