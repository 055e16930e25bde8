// A bot that uses so many seconds of CPU time for each move, in one of several ways:
//   busy_bot one|thread|threads|pool|child|sleep SECONDS
// It writes the CPU time of each move to standard error, its ended threads and children included.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

static double seconds_of(const rusage& used) {
    return used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

static double cpu_time() {
    rusage own, children;
    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &children);
    return seconds_of(own) + seconds_of(children);
}

static double thread_time() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

static void burn(double seconds) {
    static volatile unsigned long sink;
    for (double until = thread_time() + seconds; thread_time() < until;)
        for (int i = 0; i < 2000; i++) sink = sink + i;
}

// Four threads that live as long as the bot and share the work of each move.
class Pool {
   public:
    explicit Pool(double share) {
        for (int i = 0; i < 4; i++)
            std::thread([this, share] {
                for (int seen = 0;; ) {
                    {
                        std::unique_lock<std::mutex> lock(mutex_);
                        begin_.wait(lock, [&] { return round_ != seen; });
                        seen = round_;
                    }
                    burn(share);
                    std::lock_guard<std::mutex> lock(mutex_);
                    if (--working_ == 0) end_.notify_one();
                }
            }).detach();
    }
    void run() {
        std::unique_lock<std::mutex> lock(mutex_);
        working_ = 4;
        round_++;
        begin_.notify_all();
        end_.wait(lock, [&] { return working_ == 0; });
    }

   private:
    std::mutex mutex_;
    std::condition_variable begin_, end_;
    int round_ = 0, working_ = 0;
};

static void think(const std::string& kind, double seconds) {
    double began = cpu_time();
    if (kind == "one") burn(seconds);
    if (kind == "thread") std::thread(burn, seconds).join();
    if (kind == "threads")
        for (int i = 0; i < 20; i++) std::thread(burn, seconds / 20).join();
    if (kind == "pool") {
        static Pool* pool = new Pool(seconds / 4);
        pool->run();
    }
    if (kind == "child") {
        pid_t child = fork();
        if (child == 0) {
            burn(seconds);
            _exit(0);
        }
        waitpid(child, nullptr, 0);
    }
    if (kind == "sleep") usleep(seconds * 1e6);
    fprintf(stderr, "%.6f\n", kind == "sleep" ? seconds : cpu_time() - began);
}

static int first_move(const std::string& board, bool south) {
    std::vector<int> counts;
    std::stringstream text(board);
    for (std::string word; std::getline(text, word, ',');) counts.push_back(std::stoi(word));
    size_t half = counts.size() / 2;
    for (size_t pit = 0; pit + 1 < half; pit++)
        if (counts[south * half + pit]) return pit + 1;
    return 1;
}

int main(int, char** arguments) {
    std::string kind = arguments[1], line;
    double seconds = atof(arguments[2]);
    bool south = false;
    while (std::getline(std::cin, line) && line != "END") {
        std::stringstream text(line);
        std::string word, move, board, turn;
        std::getline(text, word, ';');
        std::getline(text, move, ';');
        if (word == "START") {
            south = move == "South";
            if (south) think(kind, seconds);
            if (south) std::cout << "MOVE;1" << std::endl;
            continue;
        }
        std::getline(text, board, ';');
        std::getline(text, turn, ';');
        if (move == "SWAP") south = !south;
        if (turn == "YOU") {
            think(kind, seconds);
            std::cout << "MOVE;" << first_move(board, south) << std::endl;
        }
    }
    fflush(stderr);
    _exit(0);
}
