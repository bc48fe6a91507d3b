import express from "express";
import { Readable } from "node:stream";
import { call } from "./http/call.js";

const app = express();
app.use(express.json());
app.get("/users/:id", (req, res) => res.json({ id: req.params.id, query: req.query, host: req.hostname, type: req.accepts("json", "html") }));
app.post("/users", (req, res) => res.status(201).location("/users/8").cookie("session", "a b", { httpOnly: true }).json({ got: req.body }));
app.get("/old", (req, res) => res.redirect(301, "/users/7"));
app.get("/stream", (req, res) => Readable.from(["a", "b"]).pipe(res.type("text")));
app.get("/throw", async () => {
	throw Object.assign(new Error("on purpose"), { status: 418 });
});
const admin = express.Router();
admin.get("/", (req, res) => res.send(req.baseUrl + " <b>é</b>"));
app.use("/admin", admin);
app.use((err, req, res, next) => res.status(err.status).json({ failed: err.message }));

export default async function () {
	return [
		await call(app, "GET", "/users/7?a=1&b=c%20d"),
		await call(app, "POST", "/users", '{"name":"Ada"}'),
		await call(app, "HEAD", "/users/7"),
		await call(app, "GET", "/old", "", { accept: "text/plain" }),
		await call(app, "GET", "/stream"),
		await call(app, "GET", "/throw"),
		await call(app, "GET", "/admin"),
		await call(app, "DELETE", "/none"),
	];
}
