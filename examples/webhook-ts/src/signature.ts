const PREFIX = "sha256=";

/**
 * Reports whether header is the HMAC-SHA256 of body under secret, in the form
 * "sha256=<hex>". crypto.subtle.verify compares in constant time, so the duration
 * of a refusal reveals nothing about the correct signature.
 */
export async function verifySignature(secret: string, header: string | undefined, body: Uint8Array): Promise<boolean> {
  const signature = header?.startsWith(PREFIX) ? fromHex(header.slice(PREFIX.length)) : undefined;
  if (!signature) {
    return false;
  }
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", new TextEncoder().encode(secret), algorithm, false, ["verify"]);
  return crypto.subtle.verify("HMAC", key, signature, body);
}

function fromHex(text: string): Uint8Array | undefined {
  if (!/^[0-9a-f]{64}$/.test(text)) {
    return undefined;
  }
  const bytes = new Uint8Array(text.length / 2);
  for (let i = 0; i < bytes.length; i++) {
    bytes[i] = parseInt(text.slice(2 * i, 2 * i + 2), 16);
  }
  return bytes;
}
