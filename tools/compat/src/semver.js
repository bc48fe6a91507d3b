import semver from "semver";

export default async function () {
	return {
		sorted: semver.sort(["1.10.0", "1.2.0", "1.2.0-beta.2", "1.2.0-beta.10", "0.9.9"]),
		satisfies: ["^1.2.3", "~1.2", ">=1 <2 || 3.x", "1.2.3 - 2", "*"].map((r) => semver.satisfies("1.9.0", r)),
		inc: [semver.inc("1.2.3", "minor"), semver.inc("1.2.3", "prerelease", "beta"), semver.inc("x", "major")],
		max: semver.maxSatisfying(["1.2.3", "1.9.0", "2.0.0"], "^1"),
		range: new semver.Range("^1.2.3 || ~2.1").range,
		coerced: semver.coerce("v3.4 replaces").version,
		diff: semver.diff("1.2.3", "2.0.0-pre"),
		min: semver.minVersion(">1.0.0").version,
		parsed: semver.parse("1.2.3-a.1+build").prerelease,
		intersects: semver.intersects("^1.2", "<1.5"),
		subset: semver.subset("~1.2.3", "^1.0.0"),
	};
}
