// The bot that unpacks.cpp carries.
#include <iostream>

#include "kalah.hpp"

int main() {
    Conversation conversation([](const Half& own, const Half&) { return best_hole(own); });
    for (std::string line; std::getline(std::cin, line) && line != "END";) {
        std::string reply = conversation.reply(line);
        if (!reply.empty()) std::cout << reply << std::endl;
    }
}
