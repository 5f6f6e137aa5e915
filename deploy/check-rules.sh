#!/bin/sh
# Checks the alert rules and runs their tests with promtool (Debian's package `prometheus`). Exit 0: they are good; 1: they are not; 3: promtool is not
# installed.
set -eu
cd "$(dirname "$0")"
if ! command -v promtool >/dev/null 2>&1; then
  echo 'promtool is not installed: the alert rules were not checked (apt-get install prometheus)' >&2
  exit 3
fi
promtool check rules prometheus/*.rules.yaml
exec promtool test rules prometheus/*.test.yaml
