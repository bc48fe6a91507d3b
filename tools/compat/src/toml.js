import toml from "toml";

export default async function () {
	let error;
	try {
		toml.parse("a = \n");
	} catch (err) {
		error = [err.name, err.message.split("\n")[0]];
	}
	return {
		parsed: toml.parse('title = "TOML"\n[owner]\nname = "Tom"\ndob = 1979-05-27T07:32:00Z\n[db]\nports = [8000, 8001]\nratio = 1.5\nhex = 0xff\n[[servers]]\nip = "10.0.0.1"\n[[servers]]\nip = "10.0.0.2"\n[a.b]\nc = { d = true }\ntext = """\nx\ny"""\n'),
		error,
	};
}
