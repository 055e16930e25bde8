# A bot that starts in milliseconds, also in the emulated machine: sh bot.sh first|last|fullest
# It empties its first, its last, or its fullest pit of those that are not empty.

strategy=$1

choose() { # the board's numbers: North's pits and store, then South's
    pits=$(($# / 2 - 1))
    [ "$seat" = North ] || shift $((pits + 1))
    pit=0 chosen=0 most=0
    while [ $((pit += 1)) -le $pits ]; do
        case $strategy in
        first) [ "$1" = 0 ] || { chosen=$pit; break; } ;;
        last) [ "$1" = 0 ] || chosen=$pit ;;
        fullest) [ "$1" -le $most ] || { chosen=$pit most=$1; } ;;
        esac
        shift
    done
    echo "MOVE;$chosen"
}

while IFS=';' read -r word first board next; do
    case $word in
    START) seat=$first; [ "$seat" = North ] || echo 'MOVE;1' ;;
    CHANGE) [ "$next" != YOU ] || { IFS=,; choose $board; } ;;
    END) exit ;;
    esac
done
