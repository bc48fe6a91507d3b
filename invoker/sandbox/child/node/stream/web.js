// The streams of the web: those of the platform, which are its globals.
for (const [name, module] of natives.classes) {
  Object.defineProperty(exports, name, { enumerable: true, get: () => (name in globalThis ? globalThis[name] : require(module)[name]) });
}
