import { createClient } from "@supabase/supabase-js";

export default async function () {
	const calls = [];
	const fetch = async (url, init) => {
		const headers = new Headers(init.headers);
		calls.push([init.method, String(url), headers.get("apikey"), headers.get("authorization"), headers.get("prefer"), typeof init.body === "string" ? init.body : null]);
		if (String(url).includes("/auth/")) return Response.json({ error_code: "invalid_credentials", msg: "Invalid login credentials" }, { status: 400 });
		if (String(url).includes("missing")) return Response.json({ message: "no such table", code: "42P01" }, { status: 404 });
		return Response.json([{ id: 1, name: "ada" }], { headers: { "content-range": "0-0/5" } });
	};
	const client = createClient("https://project.supabase.co", "anon-key", { global: { fetch }, auth: { persistSession: false, autoRefreshToken: false, detectSessionInUrl: false } });
	const rows = await client.from("users").select("id, name, posts(title)", { count: "exact" }).eq("name", "a b").in("id", [1, 2]).or("a.gt.1,b.is.null").order("id", { ascending: false }).range(0, 9);
	const inserted = await client.from("users").insert({ name: "é" }).select().single();
	const missing = await client.from("missing").select();
	const rpc = await client.rpc("add", { a: 1 });
	const auth = await client.auth.signInWithPassword({ email: "a@b.c", password: "x" });
	return {
		rows: [rows.data, rows.count, rows.error],
		inserted: inserted.status,
		missing: missing.error.code,
		rpc: rpc.data,
		auth: [auth.error.name, auth.error.message],
		url: client.storage.from("b").getPublicUrl("a b.png").data.publicUrl,
		calls,
	};
}
