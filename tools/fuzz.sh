#!/bin/sh
# Runs every fuzz target of the repository, one after another, each for FUZZTIME.
#
#   tools/fuzz.sh [PACKAGE…]      the default is all packages
#
# go test fuzzes one target of one package at a time, so the targets are searched in the
# sources. A finding is written to testdata/fuzz of its package: commit it with the mend, and
# every plain test run tries it again.
set -eu
cd "$(dirname "$0")/.."
fuzztime=${FUZZTIME:-1m}
parallel=${FUZZPARALLEL:-2}
failed=
for file in $(grep -rl --include='*_test.go' '^func Fuzz' "${@:-.}" | sort); do
	package=./$(dirname "$file" | sed 's|^\./||')
	for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do
		echo "== $package $target, $fuzztime"
		CGO_ENABLED=0 nice -n 19 go test "$package" -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" -parallel "$parallel" ||
			failed="$failed $package.$target"
	done
done
if [ -n "$failed" ]; then
	echo "findings:$failed" >&2
	exit 1
fi
