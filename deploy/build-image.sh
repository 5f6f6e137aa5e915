#!/bin/bash
# Builds the image of the Dockerfile where no registry of images can be reached, and starts it: with Debian's buildah, on bases that mmdebstrap
# makes of Debian 12 and that have the Node and the npm of this checkout. As root, after `npm ci`:
#
#   apt-get install --no-install-recommends buildah mmdebstrap
#   deploy/build-image.sh
#
# Exit 0: it was built and started; 1: it was not; 3: a program is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
for program in buildah mmdebstrap; do
  if ! command -v "$program" > /dev/null; then
    echo "$program is not installed: the image was not built (apt-get install buildah mmdebstrap)" >&2
    exit 3
  fi
done
if [ "$(id -u)" != 0 ]; then
  echo 'only root may mount the image: it was not built' >&2
  exit 3
fi

place=$(mktemp -d)
buildah() { command buildah --storage-driver vfs --root "$place/storage" --runroot "$place/run" "$@"; }
finish() {
  buildah umount --all > /dev/null 2>&1 || true
  rm -rf "$place"
}
trap finish EXIT

# base NAME PACKAGES: what node:<version>-bookworm has of which the Dockerfile uses something.
base() {
  mmdebstrap --quiet --variant=minbase --include="$2" bookworm "$place/base.tar" \
    "$(sed -n 's/^URIs: //p' /etc/apt/sources.list.d/debian.sources | head -1)"
  local container mount
  container=$(buildah from scratch)
  mount=$(buildah mount "$container")
  tar --extract --file "$place/base.tar" --directory "$mount"
  rm "$place/base.tar"
  cp node_modules/node/bin/node "$mount/usr/local/bin/node"
  cp --recursive "$(npm root --global)/npm" "$mount/usr/local/lib/npm"
  ln -s ../lib/npm/bin/npm-cli.js "$mount/usr/local/bin/npm"
  chroot "$mount" useradd --uid 1000 --create-home node
  buildah umount "$container" > /dev/null
  buildah commit --quiet --rm "$container" "$1" > /dev/null
}
base purser-base:build ca-certificates,python3,make,g++
base purser-base:run ca-certificates,libatomic1

# npm's own configuration of this machine leads the build to its registry. It is in no layer.
mounts=(--volume /etc/ssl/certs:/etc/ssl/certs:ro)
if [ -e ~/.npmrc ]; then mounts+=(--volume ~/.npmrc:/root/.npmrc:ro); fi
global=$(npm config get globalconfig)
if [ -e "$global" ]; then mounts+=(--volume "$global:/usr/local/etc/npmrc:ro"); fi
buildah bud --isolation chroot --format docker --network host --pull-never "${mounts[@]}" \
  --build-arg BUILD_BASE=localhost/purser-base:build --build-arg RUN_BASE=localhost/purser-base:run --tag purser .

container=$(buildah from --pull-never localhost/purser)
mount=$(buildah mount "$container")
buildah inspect --type image localhost/purser > "$place/image.json"
echo "the image holds $(du --summarize --apparent-size --block-size=1M "$mount" | cut -f1) MB"
IMAGE_ROOT=$mount IMAGE_INSPECTED=$place/image.json npx vitest run packages/server/test/image.test.ts
