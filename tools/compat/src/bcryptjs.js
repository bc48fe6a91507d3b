import bcrypt from "bcryptjs";

export default async function () {
	const known = "$2a$04$abcdefghijklmnopqrstuu5s6C5Bf2SlLbJ3jVyRg3q7yq6dRZzTm";
	const hash = await bcrypt.hash("secret", 4);
	return {
		prefix: hash.slice(0, 7),
		length: hash.length,
		same: await bcrypt.compare("secret", hash),
		other: await bcrypt.compare("Secret", hash),
		fixed: bcrypt.hashSync("secret", "$2b$04$abcdefghijklmnopqrstuu"),
		known: bcrypt.getRounds(known),
	};
}
