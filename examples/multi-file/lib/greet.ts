/** Puts name where pattern says {name}. */
export function greet(pattern: string, name: string): string {
  return pattern.replace("{name}", () => name);
}
