#!/bin/sh
# keep-wal.sh DIRECTORY: moves the archived WAL to a directory on another disk. A file leaves the archive when its copy is complete. It fails when another
# file of this name is there already, so that nothing is overwritten.
set -eu
mkdir -p "$1"
for file in "$PGDATA"/../archive/*.gz; do
  [ -e "$file" ] || continue
  kept="$1/${file##*/}"
  if [ ! -e "$kept" ]; then
    cp --preserve "$file" "$kept.part"
    sync "$kept.part"
    mv "$kept.part" "$kept"
    sync "$1"
  fi
  cmp "$file" "$kept"
  rm "$file"
done
