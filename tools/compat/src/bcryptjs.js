import bcrypt from "bcryptjs";

export default async function () {
	const known = "$2a$04$abcdefghijklmnopqrstuu5s6C5Bf2SlLbJ3jVyRg3q7yq6dRZzTm";
	const hash = await bcrypt.hash("secret", 4);
	return {
		prefix: hash.slice(0, 7),
		length: hash.length,
		same: await bcrypt.compare("secret", hash),
		other: bcrypt.compareSync("Secret", "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW"),
		known: bcrypt.getRounds(known),
	};
}
