// Reads and writes with stdio; writes output.txt over the one that was submitted; needs a locale and local time.
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "kalah.hpp"

int main() {
    setvbuf(stdout, nullptr, _IOLBF, 0);
    FILE* log = fopen("output.txt", "w");
    if (setlocale(LC_ALL, "") == nullptr || log == nullptr) {
        perror("output.txt");
        return EXIT_FAILURE;
    }
    char now[64] = "", line[1024];
    time_t seconds = time(nullptr);
    strftime(now, sizeof now, "%c %Z", localtime(&seconds));
    fprintf(log, "%s\n", now);
    Conversation conversation([log](const Half& own, const Half&) {
        fprintf(log, "hole %d, share %.2f\n", best_hole(own), own.back() / 98.0);
        return best_hole(own);
    });
    while (fgets(line, sizeof line, stdin) != nullptr) {
        line[strcspn(line, "\n")] = '\0';
        if (strcmp(line, "END") == 0) break;
        std::string reply = conversation.reply(line);
        if (!reply.empty()) printf("%s\n", reply.c_str());
    }
    return fclose(log);
}
