// A Kalah bot to start from.  Make choose_pit and wants_to_swap cleverer; the rest can stay as it is.
//
// Both get the two halves of the board: own and other hold the seeds in the pits and, as the last number, in the
// store.  own[0] is our pit 1, the furthest from our store; opposite of own[i] lies other[pits - 1 - i].

#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

using Half = std::vector<int>;

// The index of the last seed of own[i]: from 0 our pits, then our store, then the other's pits.
int last_seed(const Half& own, int i) {
    int places = 2 * static_cast<int>(own.size()) - 1;  // the other's store is left out
    return (i + own[i]) % places;
}

// The seeds that own[i] captures: our last one and all opposite, if it falls in an empty pit.
int captured(const Half& own, const Half& other, int i) {
    int pits = static_cast<int>(own.size()) - 1;
    int last = last_seed(own, i);
    if (last >= pits || own[i] > 2 * pits + 1 || (own[last] > 0 && last != i)) return 0;
    bool lapped = i + own[i] > 2 * pits;  // then every pit of the other got a seed on the way
    int opposite = other[pits - 1 - last] + (lapped ? 1 : 0);
    return opposite > 0 ? opposite + 1 : 0;
}

// The value of emptying own[i]: a capture counts far more than the seeds of a full pit.
int worth(const Half& own, const Half& other, int i) { return 1000 * captured(own, other, i) + own[i]; }

// The pit to empty; pit 1 is own[0].  This is the place for your ideas.
int choose_pit(const Half& own, const Half& other) {
    int pits = static_cast<int>(own.size()) - 1;
    // 1. A last seed in our store gives another turn: take one, the pit nearest to the store first.
    for (int i = pits - 1; i >= 0; --i)
        if (own[i] > 0 && last_seed(own, i) == pits) return i + 1;
    // 2. Else capture as many seeds as we can; 3. else empty the fullest pit, the nearest of equal ones.
    int best = -1;
    for (int i = 0; i < pits; ++i)
        if (own[i] > 0 && (best < 0 || worth(own, other, i) >= worth(own, other, best))) best = i;
    return best + 1;
}

// Whether to take the opponent's side, as our answer to its first move (the pie rule).  The opponent would move
// next, from our side.  So we swap if it is ahead and our side has no extra turn.
bool wants_to_swap(const Half& own, const Half& other) {
    int pits = static_cast<int>(own.size()) - 1;
    for (int i = 0; i < pits; ++i)
        if (own[i] > 0 && last_seed(own, i) == pits) return false;
    return other[pits] > own[pits];
}

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> fields;
    std::istringstream stream(text);
    for (std::string field; std::getline(stream, field, separator);) fields.push_back(field);
    return fields;
}

std::vector<int> numbers(const std::string& text) {
    std::vector<int> found;
    for (const std::string& word : split(text, ',')) found.push_back(std::stoi(word));
    return found;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// The board of the start, all pits full, from a game's name such as "manchester" or "kalah(6,4)".
std::vector<int> start_board(const std::string& game) {
    std::vector<int> size = game.rfind("bga", 0) == 0 ? std::vector<int>{6, 4} : std::vector<int>{7, 7};
    if (has(game, "(")) size = numbers(game.substr(game.find('(') + 1));
    std::vector<int> board(2 * (size[0] + 1), size[1]);
    board[size[0]] = board[2 * size[0] + 1] = 0;  // the stores
    return board;
}

std::string shown(const Half& half) {
    std::string text;
    for (int seeds : half) text += (text.empty() ? "" : ", ") + std::to_string(seeds);
    return "[" + text + "]";
}

// The conversation with the referee: read a line, and answer when it is our turn.
int main() {
    const char* told = std::getenv("KALARENA_GAME");
    std::string game = told ? told : "manchester";
    bool pie_rule = (has(game, "+pie") || game.rfind("manchester", 0) == 0) && !has(game, "+pie=no");
    bool opening = std::getenv("KALARENA_OPENING") != nullptr;  // some moves are made before the first turn
    std::string seat;
    std::vector<int> board = start_board(game);
    bool my_turn = false, may_swap = false;
    for (std::string line; std::getline(std::cin, line) && line != "END";) {
        std::vector<std::string> fields = split(line, ';');
        if (fields[0] == "START") {  // START;South moves first, START;North second
            seat = fields[1];
            my_turn = seat == "South" && !opening;
            may_swap = seat == "North" && !opening && pie_rule;
        } else if (fields[0] == "CHANGE") {  // CHANGE;<move>;<board>;<YOU, OPP or END>
            if (fields[1] == "SWAP") seat = seat == "South" ? "North" : "South";  // the opponent took our seat
            board = numbers(fields[2]);
            my_turn = fields[3] == "YOU";
        } else {  // TIME, which only bots that ask for it in bot.toml are told
            continue;
        }
        if (!my_turn) continue;
        Half north(board.begin(), board.begin() + board.size() / 2);
        Half south(board.begin() + board.size() / 2, board.end());
        const Half& own = seat == "North" ? north : south;
        const Half& other = seat == "North" ? south : north;
        bool swap = may_swap && wants_to_swap(own, other);
        std::string reply = swap ? "SWAP" : "MOVE;" + std::to_string(choose_pit(own, other));
        if (swap) seat = "South";
        may_swap = false;  // only our very first answer may be SWAP
        // What goes to standard error is only seen by you.
        std::cerr << seat << ": own " << shown(own) << ", other " << shown(other) << ": " << reply << "\n";
        std::cout << reply << std::endl;  // endl flushes: without that the referee never sees it
    }
}
