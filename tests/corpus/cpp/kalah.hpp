// A small player of the Manchester protocol, which the C++ bots of the corpus include.
#pragma once
#include <functional>
#include <sstream>
#include <string>
#include <vector>

using Half = std::vector<int>;
constexpr int OPENING_HOLE = 3;

// Returns a hole with an extra turn if there is one, else the fullest hole; the last number is the store.
inline int best_hole(const Half& own) {
    int pits = static_cast<int>(own.size()) - 1, best = -1;
    for (int i = 0; i < pits; ++i) {
        if (own[i] > 0 && i + own[i] == pits) return i + 1;
        if (own[i] > 0 && (best < 0 || own[i] > own[best])) best = i;
    }
    return best + 1;
}

inline std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> fields;
    std::istringstream stream(text);
    for (std::string field; std::getline(stream, field, separator);) fields.push_back(field);
    return fields;
}

// The conversation without its input and output: a bot reads lines, and sends what this returns if it is not empty.
class Conversation {
public:
    explicit Conversation(std::function<int(const Half&, const Half&)> choose) : choose_(std::move(choose)) {}

    std::string reply(const std::string& line) {
        std::vector<std::string> fields = split(line, ';');
        if (fields.empty()) return "";
        if (fields[0] == "START") {
            north_ = may_swap_ = fields[1] == "North";
            return north_ ? "" : "MOVE;" + std::to_string(OPENING_HOLE);
        }
        if (fields[0] != "CHANGE") return "";
        if (fields[1] == "SWAP") north_ = true;
        if (fields[3] != "YOU") return "";
        if (may_swap_ && std::stoi(fields[1]) % 2 == 0) {
            may_swap_ = north_ = false;
            return "SWAP";
        }
        may_swap_ = false;
        Half board;
        for (const std::string& number : split(fields[2], ',')) board.push_back(std::stoi(number));
        auto middle = board.begin() + static_cast<long>(board.size() / 2);
        Half north(board.begin(), middle), south(middle, board.end());
        return "MOVE;" + std::to_string(choose_(north_ ? north : south, north_ ? south : north));
    }

private:
    std::function<int(const Half&, const Half&)> choose_;
    bool north_ = false, may_swap_ = false;
};
