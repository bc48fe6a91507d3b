/** Replaces {name} in pattern by name. */
export function greet(pattern: string, name: string): string {
  return pattern.replace("{name}", () => name);
}
