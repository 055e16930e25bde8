#!/bin/sh
# Plays in the shell alone: the first hole with seeds. Notes each line in a temporary file.
cd "$(dirname "$0")" || exit 1
notes=$(mktemp) || exit 1
trap 'rm -f "$notes"' EXIT
seat=
while IFS=';' read -r word first state turn; do
  echo "$word $first $state $turn" >> "$notes"
  case $word in
    END) break ;;
    START)
      seat=$first
      if [ "$seat" = South ]; then echo 'MOVE;1'; fi
      continue ;;
  esac
  if [ "$first" = SWAP ]; then seat=North; fi
  if [ "$turn" != YOU ]; then continue; fi
  old_ifs=$IFS
  IFS=,
  # shellcheck disable=SC2086
  set -- $state
  IFS=$old_ifs
  pits=$(($# / 2 - 1))
  if [ "$seat" = South ]; then shift $((pits + 1)); fi
  hole=1
  while [ "$1" -eq 0 ]; do
    hole=$((hole + 1))
    shift
  done
  echo "MOVE;$hole"
done
