// Searches with one thread for each core; iostream without stdio's buffers.
#include <algorithm>
#include <atomic>
#include <iostream>
#include <thread>

#include "kalah.hpp"

int main() {
    std::ios::sync_with_stdio(false);
    std::cin.tie(nullptr);
    Conversation conversation([](const Half& own, const Half&) {
        std::atomic<unsigned> nodes{0};
        std::vector<std::thread> threads;
        for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
            threads.emplace_back([&nodes] {
                for (unsigned j = 0; j < 100000; ++j) nodes += j & 1;
            });
        for (std::thread& thread : threads) thread.join();
        return nodes > 0 ? best_hole(own) : 1;
    });
    for (std::string line; std::getline(std::cin, line) && line != "END";) {
        std::string reply = conversation.reply(line);
        if (!reply.empty()) std::cout << reply << '\n' << std::flush;
    }
}
