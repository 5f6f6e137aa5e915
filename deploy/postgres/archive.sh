#!/bin/sh
# archive.sh PATH NAME: keeps a file of WAL. It fails when another file of this name is there already, so that nothing is overwritten.
set -eu
kept="../archive/$2.gz"
if [ -e "$kept" ]; then
  gunzip < "$kept" | cmp -s - "$1"
  exit
fi
gzip < "$1" > "$kept.part"
sync "$kept.part"
mv "$kept.part" "$kept"
sync ../archive
