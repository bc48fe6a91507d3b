import EventEmitter from "eventemitter3";

export default async function () {
	const bus = new EventEmitter();
	const seen = [];
	const on = (...args) => seen.push(args);
	bus.on("a", on);
	bus.once("a", function (x) {
		seen.push(["once", x, this === bus]);
	});
	bus.emit("a", 1, 2);
	bus.emit("a", 3);
	bus.off("a", on);
	const symbol = Symbol("s");
	bus.on(symbol, on, { ctx: true });
	return { seen, none: bus.emit("a"), names: bus.eventNames().map(String), count: bus.listenerCount(symbol) };
}
