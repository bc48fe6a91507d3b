// A small assembler. A function is [type, ...instructions] and has no locals.
export const I32 = 0x7f, I64 = 0x7e, F32 = 0x7d, F64 = 0x7c, FUNC = 0x70, EXTERN = 0x6f;
export const u = (n) => { const out = []; do { out.push((n & 127) | (n > 127 ? 128 : 0)); n = Math.floor(n / 128); } while (n > 0); return out; };
export const str = (s) => [...u(s.length), ...[...s].map((c) => c.charCodeAt(0))];
export const vec = (items) => [...u(items.length), ...items.flat()];
export const section = (id, items) => (items ? [id, ...u(vec(items).length), ...vec(items)] : []);
const limits = (min, max) => (max === undefined ? [0, ...u(min)] : [1, ...u(min), ...u(max)]);
const bytes = (s) => vec(s.map((x) => [x]));
export const wasm = (m) => new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
  ...section(1, m.types?.map(([p, r]) => [0x60, ...bytes(p), ...bytes(r)])),
  ...section(2, m.imports?.map(([module, name, d]) => [...str(module), ...str(name), ...d])),
  ...section(3, m.funcs?.map((f) => [f[0]])), ...section(4, m.tables?.map(([t, ...l]) => [t, ...limits(...l)])),
  ...section(5, m.memories?.map((l) => limits(...l))), ...section(6, m.globals),
  ...section(7, m.exports?.map(([n, k, i]) => [...str(n), k, i])), ...(m.start === undefined ? [] : [8, 1, m.start]),
  ...section(9, m.elements), ...section(10, m.funcs?.map((f) => { const b = [0, ...f.slice(1), 0x0b]; return [...u(b.length), ...b]; })),
  ...section(11, m.data), ...(m.custom ? [0, ...u(str(m.custom[0]).length + m.custom[1].length), ...str(m.custom[0]), ...m.custom[1]] : [])]);
export const make = (m, imports) => new WebAssembly.Instance(new WebAssembly.Module(wasm(m)), imports).exports;
export const threw = (f) => { try { f(); } catch (e) { return e.name + (e instanceof Error ? "" : "!"); } };
