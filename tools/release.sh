#!/bin/sh
# Builds a release into the folder $1 (make release): for Linux on each of RELEASE_ARCHS an
# archive and a Debian package, an SBOM, the definition of the container image, and checksums.
# The same commit makes the same files on every machine with the same Go.
set -eu
dist=${1:?usage: tools/release.sh FOLDER}
: "${GO:=go}" "${MAKE:=make}" "${RELEASE_ARCHS:=amd64 arm64}"
nfpm=github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.0
cyclonedx=github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0

VERSION=$(sed -n 's/^const Release = "\(.*\)"$/\1/p' cmd/sous/internal/build/build.go)
heading=$(grep -m 1 '^## ' CHANGELOG.md)
case $heading in
"## $VERSION ("*) ;;
*) echo "CHANGELOG.md begins with \"$heading\", not with \"## $VERSION (…)\"" >&2 && exit 1 ;;
esac
# Files have the time of the commit, so that two builds do not differ.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || echo 0)
export VERSION SOURCE_DATE_EPOCH

rm -rf "$dist"
mkdir -p "$dist"
dist=$(cd "$dist" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# pack FOLDER ARCHIVE: a tar whose bytes depend on nothing but the files.
pack() {
	tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=go-w \
		-C "$(dirname "$1")" -cf - "$(basename "$1")" | gzip -9n >"$2"
}

for arch in $RELEASE_ARCHS; do
	GOOS=linux GOARCH=$arch $MAKE --no-print-directory build CONSOLE=yes BIN="$work/$arch" VERSION="$VERSION"
done
for shell in bash zsh fish; do
	"$work/$($GO env GOHOSTARCH)/sous" completion $shell >"$work/sous.$shell"
done
# The unit of the package starts the program where the package puts it.
sed 's,/usr/local/bin/sous,/usr/bin/sous,' deploy/sous.service >"$work/sous.service"

for arch in $RELEASE_ARCHS; do
	name=sous-$VERSION-linux-$arch
	mkdir "$work/$name"
	cp "$work/$arch/sous" LICENSE README.md "$work/$name/"
	cp -L CHANGELOG.md deploy/sous.service deploy/kvrocks.conf "$work/$name/"
	pack "$work/$name" "$dist/$name.tar.gz"
	# The image takes the binary of its platform.
	cp "$work/$arch/sous" "$dist/sous-linux-$arch"
	WORK=$work ARCH=$arch $GO run $nfpm package --config deploy/nfpm.yaml --packager deb --target "$dist/sous_${VERSION}_$arch.deb"
done
cp deploy/Dockerfile.release "$dist/Dockerfile"
$GO run $cyclonedx mod -json -licenses -type application -noserial -notimestamp -output "$dist/sous-$VERSION.cdx.json" .
(cd "$dist" && sha256sum -- * >"$work/SHA256SUMS" && mv "$work/SHA256SUMS" .)
ls -l "$dist"
